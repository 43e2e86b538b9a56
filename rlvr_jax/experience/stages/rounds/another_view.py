"""Rows that are learned from under another view of their prompts than they were drawn from."""

from dataclasses import replace

import numpy as np

from rlvr_jax.experience.asks import View
from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.parts import Actor
from rlvr_jax.experience.stages.donors.traces import own_rows

__all__ = ["under_another_view"]


def under_another_view(drawn: Batch, actor: Actor, view: View) -> Batch:
    """Rows that are trained under another view of their prompts than they were drawn from."""
    tokens, length = actor.prompts([replace(ask, view=view) for ask in drawn.asks])
    rollouts = drawn.rollouts
    return own_rows(drawn).with_rollouts(
        prompt_tokens=tokens,
        prompt_length=length,
        shown_tokens=rollouts.prompt_tokens,
        shown_length=rollouts.prompt_length,
        off_policy=np.ones(len(drawn), bool),
    )


GIVES = frozenset({"second_tokens", "second_length"})
