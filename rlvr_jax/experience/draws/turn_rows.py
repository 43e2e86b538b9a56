"""Answers written in turns of which each turn is a row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from rlvr_jax.experience.batch import GIVEN, Batch
from rlvr_jax.experience.draws.chunks import by_trace
from rlvr_jax.experience.draws.turns import turns
from rlvr_jax.experience.parts import Draw
from rlvr_jax.tools import Environment, Game
from rlvr_jax.types import Rollouts, axes_of
from rlvr_jax.types.parts import part

__all__ = ["turn_rows"]


@part
def turn_rows(
    environment: Environment | Game | None = None,
    limit: int = 8,
    reply_tokens: int = 512,
    **sampling: Any,
) -> Draw:
    """Writes answers as `turns` does, and makes a row of each turn of the policy.

    A row is what was written and said up to the end of the turn, of which the turn alone is
    learned from, in the context in which it was drawn; its `env_step` counts the turns of its
    answer from 0. The rows of an answer have one `trace`, stand in order, and are graded by the
    last of them; `truncated` says of all of them whether the answer as a whole was cut.

    Args:
      environment, limit, reply_tokens, sampling: as for `turns`; an answer has `limit` + 1 rows at
        most.
    Metrics: those of `turns`.
    Raises:
      ValueError: as `turns`.
    """
    whole = turns(environment, limit, reply_tokens, **sampling)

    def apply(asks, actor, state, turn):
        batch, state, told = whole.apply(asks, actor, state, turn)
        last = np.where(batch.rollouts.turn % 2 == 0, batch.rollouts.turn // 2, -1).max(axis=1)
        parts, traces = [], []
        for step in range(int(last.max(initial=0)) + 1):
            rows = np.flatnonzero(np.maximum(last, 0) >= step)
            parts.append(_rows_of(batch.take(rows), step, last[rows] <= step))
            traces.append(rows)
        made = by_trace(parts, np.concatenate(traces), asks)
        return replace(made, sample_seconds=batch.sample_seconds), state, told

    return replace(
        whole, apply=apply, most=float(limit + 1), splits=True, writes=whole.writes | {"env_step"}
    )


def _rows_of(batch: Batch, step: int, last: np.ndarray) -> Batch:
    """The rows of one turn.

    Args:
      last: bool [B], answers that end with it.
    """
    rollouts = batch.rollouts
    places = np.arange(rollouts.tokens.shape[1])[None]
    own = rollouts.turn == 2 * step
    length = np.where(last, rollouts.length, np.max(np.where(own, places + 1, 0), axis=1))
    there = places < length[:, None]
    before = there & ~own & (rollouts.origin == 0)
    changed: dict[str, Any] = {}
    for name, (_, axes) in axes_of(Rollouts).items():
        array = getattr(rollouts, name)
        if axes[:2] != ("B", "T") or array is None or name in ("turn", "origin", "temperature"):
            continue
        # Tokens stay as context; what is recorded of earlier ones belongs to other rows.
        kept = there if name == "tokens" else own
        changed[name] = np.where(
            kept.reshape(*kept.shape, *[1] * (array.ndim - 2)), array, array.dtype.type(0)
        )
    return batch.with_rollouts(
        **changed,
        length=length.astype(np.int32),
        turn=np.where(there, rollouts.turn, -1).astype(np.int32),
        origin=np.where(there, np.where(before, GIVEN, rollouts.origin), 0).astype(np.int32),
        env_step=np.full(len(batch), step, np.int32),
    )
