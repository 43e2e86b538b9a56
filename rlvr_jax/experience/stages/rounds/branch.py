"""Rows that are drawn again from a place inside them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.parts import Actor, Stage, Turn
from rlvr_jax.types.hyperparameters import Count
from rlvr_jax.types.parts import part

__all__ = ["branch"]

Places = Callable[[Batch, Turn], np.ndarray]
"""(batch, turn) -> int [B], of each row the first token that is drawn again; 0: the whole row."""


@part(by_row=True, counts=True)
def branch(at: Places, samples: Count) -> Stage:
    """Draws every row again from a place inside it; the branches join its group.

    What stands before the place is given and not trained, so that a branch differs from a fresh
    response by what its parent drew for it. Given that this was drawn by the same policy, it is a
    valid response to the prompt, but the rows of a group are correlated. n rows of a group become
    n (1 + samples): each row's branches stand behind all rows, in their order, and know their
    parent.

    Args:
      at: where, such as `critical_token()`.
      samples: branches of each row.
    Reads: what `at` reads. Writes: parent, branch_position, of the branches.
    Draws: `samples` for each row. Metrics: branched_share (rows with a branch inside, not at their
      beginning), branch_position (mean over rows).
    Raises:
      ValueError: fewer than one sample; rows per group that are no multiple of 1 + samples.
    Source: CURE draws so (the link stands in the method's card).
    """

    def size(trained: int) -> int:
        if trained % (1 + samples):
            raise ValueError(
                f"branch: rows of a group must be a multiple of {1 + samples}, a row and its"
                f" {samples} branches, got {trained}"
            )
        return trained // (1 + samples)

    def apply(batch, actor, state, turn):
        positions = np.asarray(at(batch, turn)).astype(np.int32)
        # An opening is what the view shows, not what the policy drew.
        openings = np.array([_opening(ask, actor, turn) for ask in batch.asks], np.int32)
        positions = np.maximum(positions, openings)
        asks = [
            replace(
                batch.asks[row],
                samples=samples,
                given=batch.rollouts.tokens[row, openings[row] : positions[row]].tolist(),
                # Rows of a group have one number, by which their branches would be keyed alike.
                first_sample=place * samples,
            )
            for rows in batch.groups
            for place, row in enumerate(rows)
        ]
        drawn = actor.grade(actor.draw(asks, turn.key))
        sizes = [len(rows) * samples for rows in batch.groups]
        every = np.arange(len(sizes), dtype=np.int32)
        drawn = drawn.with_rollouts(group=np.repeat(every, sizes)).renumbered()
        joined = batch.with_groups(np.ones(len(sizes), bool), drawn, "append")
        parent = joined.rollouts.parent.copy()
        place = joined.rollouts.branch_position.copy()
        for before, rows in zip(batch.groups, joined.groups, strict=True):
            own, branches = rows[: len(before)], rows[len(before) :]
            parent[branches] = np.repeat(own, samples)
            place[branches] = np.repeat(positions[before], samples)
        told = {
            "branched_share": float(np.mean(positions > openings)),
            "branch_position": float(positions.mean()),
        }
        return joined.with_rollouts(parent=parent, branch_position=place), state, told

    return Stage(apply, size=size)


def _opening(ask, actor: Actor, turn: Turn) -> int:
    """Tokens that the ask's view begins a response with."""
    return len(ask.view.show(ask.prompt, turn.setting.task).begun(actor.encode))
