"""Prompts that are answered once, by what the policy holds for likeliest."""

from __future__ import annotations

from dataclasses import replace

from rlvr_jax.experience.parts import Curriculum
from rlvr_jax.types.parts import part

__all__ = ["ask_greedily"]

GREEDY = 1e-6
"""A temperature that draws the likeliest token."""


@part
def ask_greedily() -> Curriculum:
    """Asks what the curricula before it ask once each, decoded greedily.

    A stage such as `screen` says which of the prompts are then asked as usual.
    """

    def propose(asks, state, turn):
        del state, turn
        return [replace(ask, samples=1, temperature=GREEDY) for ask in asks]

    return Curriculum(propose)
