"""The length of a hint at which a prompt is right as often as is wanted, searched in rounds."""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np

from rlvr_jax.experience.parts import Stage
from rlvr_jax.experience.stages.rounds.response_curve import next_hint
from rlvr_jax.experience.views import begin_with
from rlvr_jax.types.hyperparameters import Count, OpenUnit
from rlvr_jax.types.parts import part

__all__ = ["search_hint"]


@part(
    reads=frozenset({"solution"}),
    writes=frozenset({"origin"}),
    by_row=True,
    views=(begin_with(1.0, trained=True, whole_steps=True),),
)
def search_hint(rounds: Count, target: OpenUnit) -> Stage:
    """Draws every group in rounds, each with the hint that should bring its accuracy to a target.

    A response begins with the first steps of the worked solution, whose tokens are on the mask. The
    first round is what was drawn, with the views that curricula gave (`remember_hints`); after
    each, a curve of accuracy over the share that is shown is fitted to the rounds so far. The rows
    of all rounds are one group.

    Args:
      rounds: m; rows of a group must be a multiple.
      target: accuracy a*, in (0, 1).
    Reads: outcome, Prompt.solution. Draws: m - 1 times what was drawn. Writes: mask, origin.
    Metrics: hint_share (mean of the last round), hinted_outcome (mean of the last round).
    Raises:
      ValueError: rounds below 1, a target outside (0, 1); rows per group that are no multiple.
    Source: SEELE (the link stands in the method's card).
    """

    def size(samples):
        if samples % rounds:
            raise ValueError(
                f"search_hint: rows of a group must be a multiple of the {rounds} rounds, got"
                f" {samples}"
            )
        return samples // rounds

    def apply(batch, actor, state, turn):
        every = np.ones(len(batch.groups), bool)
        asks, last = batch.asks_of(every), batch.outcomes()
        points = [[] for _ in asks]
        for number in range(1, rounds):
            for known, ask, outcomes in zip(points, asks, last, strict=True):
                if not np.isnan(outcomes).all():
                    known.append((ask.view.fraction, float(np.nanmean(outcomes))))
            asks = [
                replace(ask, view=_view(known, ask, target), first_sample=number * ask.samples)
                for known, ask in zip(points, asks, strict=True)
            ]
            drawn = actor.grade(actor.draw(asks, jax.random.fold_in(turn.key, number)))
            batch, last = batch.with_groups(every, drawn, "append"), drawn.outcomes()
        told = {
            "hint_share": float(np.mean([ask.view.fraction for ask in asks])),
            "hinted_outcome": float(np.mean(np.nan_to_num(last))),
        }
        return batch, state, told

    return Stage(apply, size=size)


def _view(points, ask, target):
    """The next hint; that of the last round where no answer had a verdict."""
    steps = len(ask.prompt.solution)
    share = next_hint(points, target, steps) if points else ask.view.fraction
    return begin_with(share, trained=True, whole_steps=True)
