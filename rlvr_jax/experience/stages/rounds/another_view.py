"""Rows that are trained under another view of their prompts than they were sampled under."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.parts import Actor
from rlvr_jax.experience.requests import SampleRequest, View
from rlvr_jax.experience.stages.donors.traces import own_rows

GIVES = frozenset({"second_tokens", "second_length"})


def under_another_view(sampled: Batch, actor: Actor, view: View) -> Batch:
    """Rows that are trained under `view` instead of the view of their sampling."""
    tokens, length = actor.prompts([replace(request, view=view) for request in sampled.requests])
    rollouts = sampled.rollouts
    return own_rows(sampled).with_rollouts(
        prompt_tokens=tokens,
        prompt_length=length,
        shown_tokens=rollouts.prompt_tokens,
        shown_length=rollouts.prompt_length,
        off_policy=np.ones(len(sampled), bool),
    )


def with_second_prompts(
    batch: Batch, actor: Actor, requests: Sequence[SampleRequest], there: np.ndarray
) -> Batch:
    """The batch with a second prompt of some rows.

    Args:
      batch: the batch.
      actor: encodes the prompts.
      requests: request of the second prompt of every row.
      there: bool [B], rows that get one.
    """
    tokens, length = actor.prompts(requests)
    return batch.with_rollouts(
        second_tokens=np.where(there[:, None], tokens, 0).astype(tokens.dtype),
        second_length=np.where(there, length, 0).astype(length.dtype),
    )
