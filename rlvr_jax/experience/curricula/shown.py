"""All prompts under one view."""

from __future__ import annotations

from dataclasses import replace

from rlvr_jax.experience.asks import View
from rlvr_jax.experience.parts import Curriculum

__all__ = ["show_as"]


def show_as(view: View) -> Curriculum:
    """Asks what the curricula before it ask under another view.

    Args:
      view: such as `augmented(0.5)`.
    Reads: what the view reads.
    """

    def propose(asks, state, turn):
        del state, turn
        return [replace(ask, view=view) for ask in asks]

    return Curriculum(propose, f"show_as({view.label})", needs=view.needs, views=(view,))
