"""Prompts under other views: all of them, or some."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rlvr_jax.experience.asks import PLAIN, View, shows_nothing
from rlvr_jax.experience.parts import Curriculum
from rlvr_jax.types.parts import part

__all__ = ["exact_shares", "mix_views", "show_as"]


@part
def show_as(view: View) -> Curriculum:
    """Asks what the curricula before it ask under another view.

    Args:
      view: such as `augmented(0.5)`.
    Reads: what the view reads. Metrics: shown_as_it_is (share of the groups whose prompt the view
      shows as it is, such as where a hint gives the answer away).
    """

    def propose(asks, state, turn):
        del state, turn
        return [replace(ask, view=view) for ask in asks]

    def observe(state, turn, seen, learned):
        del seen
        asked = [learned.asks[rows[0]] for rows in learned.groups]
        bare = [shows_nothing(replace(ask, view=view), turn.setting.task) for ask in asked]
        return state, {"shown_as_it_is": float(np.mean(bare))} if bare else {}

    return Curriculum(propose, observe=observe, reads=view.reads, views=(view,))


def exact_shares(number: int, shares: Sequence[float]) -> list[int]:
    """Which of several kinds each of some places has, in blocks, their sizes as near to the shares
    as whole numbers can be; -1 for the rest.

    Args:
      shares: of the kinds, whose sum is at most 1.
    """
    ends = [round(number * total) for total in itertools.accumulate(shares)]
    return [next((kind for kind, end in enumerate(ends) if i < end), -1) for i in range(number)]


@part
def mix_views(views: Sequence[View], shares: Sequence[float]) -> Curriculum:
    """Asks some of what the curricula before it ask under other views, the others as they are.

    Shares are exact in every round; which ask gets which view is random.

    Args:
      views: at least one.
      shares: of the asks, one for each view, whose sum is at most 1.
    Reads: what the views read. Metrics: outcome/<view> and outcome/plain, means over the groups;
      plain is also what a view shows as it is.
    Raises:
      ValueError: no views, another number of shares, or shares that are negative or above 1
        together.
    """
    if not views or len(views) != len(shares):
        raise ValueError(
            f"mix_views: shares must be one for each of the {len(views)} views, at least one, got"
            f" {list(shares)}"
        )
    if min(shares) < 0 or not sum(shares) <= 1:
        raise ValueError(
            f"mix_views: shares must be at least 0 and at most 1 together, got {list(shares)}"
        )

    def propose(asks, state, turn):
        del state
        kinds = np.array(exact_shares(len(asks), shares), int)
        random = turn.random().spawn(turn.round + 1)[-1]
        kinds = random.permutation(kinds)
        return [
            ask if kind < 0 else replace(ask, view=views[kind])
            for ask, kind in zip(asks, kinds.tolist(), strict=True)
        ]

    def observe(state, turn, seen, learned):
        del learned
        told: dict[str, list[float]] = {}
        for batch in seen:
            for rows, outcomes in zip(batch.groups, batch.outcomes(), strict=True):
                ask = batch.asks[rows[0]]
                if not ask.rating and not np.isnan(outcomes).all():
                    bare = shows_nothing(ask, turn.setting.task)
                    label = PLAIN.label if bare else ask.view.label
                    told.setdefault(label, []).append(float(np.nanmean(outcomes)))
        return state, {f"outcome/{name}": float(np.mean(x)) for name, x in told.items()}

    return Curriculum(
        propose,
        observe=observe,
        reads=frozenset().union(*(view.reads for view in views)),
        views=tuple(views),
    )
