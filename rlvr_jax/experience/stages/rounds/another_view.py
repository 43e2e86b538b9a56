"""Rows that are learned from under another view of their prompts than they were drawn from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rlvr_jax.experience.asks import View
from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.parts import Actor, Stage
from rlvr_jax.experience.stages.donors.traces import own_rows
from rlvr_jax.types.parts import part

__all__ = ["train_under", "under_another_view"]


@part
def train_under(view: View) -> Stage:
    """Learns from all rows under another view of their prompts, as whoever knows more would.

    The rows are marked `off_policy`; their old log-probs are of the context they were drawn in,
    those of a reference and of the update of the one they are trained in.

    Args:
      view: such as `with_reference()`.
    Writes: prompt_tokens, prompt_length, shown_tokens, shown_length, off_policy.
    """

    def apply(batch, actor, state, turn):
        del turn
        return under_another_view(batch, actor, view), state, {}

    gives = frozenset({"off_policy"})
    return Stage(apply, reads=view.reads, views=(view,), writes=gives)


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
