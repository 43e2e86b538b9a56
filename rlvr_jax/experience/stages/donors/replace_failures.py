"""Failed answers give way to right ones that the policy wrote with help."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rlvr_jax.experience.asks import PLAIN, View
from rlvr_jax.experience.batch import Batch, concatenate
from rlvr_jax.experience.parts import Stage
from rlvr_jax.experience.stages.choices.groups import all_wrong
from rlvr_jax.experience.stages.donors.traces import own_rows
from rlvr_jax.experience.stages.rounds.another_view import under_another_view
from rlvr_jax.types.hyperparameters import Count, Unit
from rlvr_jax.types.parts import part

__all__ = ["failure_sources", "replace_failures", "with_rows"]

RIGHT = 0.5
"""An outcome above this counts as right."""


def failure_sources(outcome: np.ndarray, guided: np.ndarray, most: int) -> np.ndarray:
    """Which guided row each row gives way to, int [G, N]; -1: it stays.

    In a group without a success the right guided rows, in order, take the first rows.

    Args:
      outcome: [G, N], NaN without a verdict.
      guided: [G, M], of the guided rows.
      most: rows of a group that give way at most.
    """
    source = np.full(outcome.shape, -1)
    for group in np.flatnonzero(all_wrong(outcome)):
        right = np.flatnonzero(np.nan_to_num(guided[group]) > RIGHT)
        right = right[: min(most, outcome.shape[1])]
        source[group, : len(right)] = right
    return source


def with_rows(batch: Batch, rows: np.ndarray, others: Batch, sources: np.ndarray) -> Batch:
    """The batch with rows of another one in the places of some.

    Args:
      rows: int [n], places.
      sources: int [n], the rows of `others` that stand there.
    """
    order = np.arange(len(batch))
    order[rows] = len(batch) + sources
    group = batch.renumbered().rollouts.group
    return concatenate([batch, others]).take(order).with_rollouts(group=group).renumbered()


@part(writes=frozenset({"off_policy", "origin"}), by_row=True)
def replace_failures(view: View, samples: Count, share: Unit) -> Stage:
    """Asks groups that are all wrong again with help, and keeps what comes out right.

    Right answers that were drawn under the view take the places of failed ones, trained under the
    prompt as it is: marked `off_policy`, with old log-probs of the context they were drawn in. A
    group of which no guided answer is right stays as it is.

    Args:
      view: what helps, such as `hint(1.0)`, the whole worked solution.
      samples: guided answers to each prompt.
      share: of the rows of a group that give way at most, in [0, 1].
    Reads: outcome. Draws: `samples` for each group that is all wrong. Writes: off_policy, origin,
      shown_tokens, shown_length. Metrics: guided_groups (share of the groups), guided_right (of the
      guided answers), replaced_rows (share of the rows).
    Raises:
      ValueError: fewer than one sample, a share outside [0, 1].
    Source: EGSR (the link stands in the method's card).
    """

    def apply(batch, actor, state, turn):
        batch, outcomes = own_rows(batch), batch.outcomes()
        failed = all_wrong(outcomes)
        told = {"guided_groups": float(failed.mean()), "replaced_rows": 0.0}
        if not failed.any():
            return batch, state, told
        asks = [replace(ask, view=view, samples=samples) for ask in batch.asks_of(failed)]
        drawn = actor.grade(actor.draw(asks, turn.key))
        told["guided_right"] = float(np.mean(drawn.rollouts.outcome > RIGHT))
        source = failure_sources(outcomes[failed], drawn.outcomes(), int(share * outcomes.shape[1]))
        own = [rows for rows, there in zip(batch.groups, failed, strict=True) if there]
        pairs = [
            (own[group][place], drawn.groups[group][source[group, place]])
            for group, place in np.argwhere(source >= 0)
        ]
        if not pairs:
            return batch, state, told
        rows, sources = np.array(pairs).T
        told["replaced_rows"] = len(rows) / len(batch)
        return with_rows(batch, rows, under_another_view(drawn, actor, PLAIN), sources), state, told

    return Stage(apply, reads=view.reads, views=(view,))
