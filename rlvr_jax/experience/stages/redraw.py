"""Groups that are drawn again: under another view of their prompts, or for other prompts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from rlvr_jax.experience.asks import View
from rlvr_jax.experience.batch import Batch, GroupTest, concatenate
from rlvr_jax.experience.parts import Actor, Stage, Turn, stateless

__all__ = ["redraw", "refill", "refilled"]


def redraw(when: GroupTest, view: View, place: str = "replace", samples: int = 0) -> Stage:
    """Draws groups again under another view of their prompts.

    The new rows are trained in the context that they were drawn in, so their ratio is 1.

    Args:
      when: which groups, such as `all_wrong`.
      view: what is shown this time, such as `hint(0.25)`.
      place: "replace" the rows, or "append" to them.
      samples: responses to each; 0: as many as the group has answers.
    Reads: outcome. Draws: `samples` for each group that is drawn again.
    Metrics: redrawn_share (of the groups).
    """

    def apply(batch, actor, turn):
        again = np.asarray(when(batch.outcomes()))
        told = {"redrawn_share": float(again.mean())}
        if not again.any():
            return batch, told
        asks = [
            replace(batch.asks[rows[0]], view=view, samples=samples or len(answers))
            for rows, answers, out in zip(batch.groups, batch.answers.groups, again, strict=True)
            if out
        ]
        drawn = actor.grade(actor.draw(asks, turn.key))
        return batch.with_groups(again, drawn, place), told

    return stateless(
        apply,
        f"redraw({when.__name__}, {view.label}, {place})",
        needs=view.needs,
        views=(view,),
        most=2.0 if place == "append" else 1.0,
    )


def refill(when: GroupTest, rounds: int) -> Stage:
    """Draws further prompts until the batch is full of groups that are not dropped.

    Each round asks as many prompts as a step has; of what is kept the first ones are taken, in the
    order of arrival. When the rounds are used up, dropped groups fill the batch; their mask is
    cleared, so that they count nowhere.

    Args:
      when: which groups are dropped, such as `uniform`. Groups without a verdict always are.
      rounds: batches that are drawn at most, the first one included.
    Reads: outcome. Writes: mask, of groups that fill the batch.
    Metrics: refill/rounds (batches drawn), refill/kept_share (of the groups drawn),
      refill/filled_with_dropped (groups).
    Raises:
      ValueError: fewer than one round.
    Source: Yu et al. 2025, https://arxiv.org/abs/2503.14476 (dynamic sampling).
    """
    if rounds < 1:
        raise ValueError(f"refill: rounds must be at least 1, got {rounds}")

    def apply(batch, actor, turn):
        return refilled(batch, actor, turn, when, rounds, lambda *_: turn.setting.prompts)

    label = f"refill({when.__name__}, rounds={rounds})"
    return stateless(apply, label, rounds=rounds - 1)


def refilled(
    batch: Batch,
    actor: Actor,
    turn: Turn,
    when: GroupTest,
    rounds: int,
    pool: Callable[[int, int, int], int],
) -> tuple[Batch, dict[str, float]]:
    """The batch of `refill`, in which a round may ask another number of prompts, and metrics.

    Of groups that are kept the first ones drawn are taken, as many as a step has prompts.

    Args:
      pool: (groups missing, groups kept, groups drawn so far) -> prompts of the next round.
    """
    wanted = turn.setting.prompts
    drawn = [batch]
    kept, spare = _sorted(batch, 0, when)
    while len(kept) < wanted and len(drawn) < rounds:
        asks = turn.more(pool(wanted - len(kept), len(kept), len(kept) + len(spare)))
        if not asks:
            break
        drawn.append(actor.grade(actor.draw(asks)))
        more = _sorted(drawn[-1], len(drawn) - 1, when)
        kept, spare = kept + more[0], spare + more[1]
    told = {
        "refill/rounds": len(drawn),
        "refill/kept_share": len(kept) / (len(kept) + len(spare)),
        "refill/filled_with_dropped": max(0, wanted - len(kept)),
    }
    if len(drawn) == 1 and len(batch.groups) <= wanted:
        dropped = [row for _, rows in spare for row in rows]
        return batch.without(np.isin(np.arange(len(batch)), dropped)), told
    parts = [drawn[number].take(rows) for number, rows in kept[:wanted]]
    for number, rows in spare[: wanted - len(parts)]:
        part = drawn[number].take(rows)
        parts.append(part.without(np.ones(len(part), bool)))
    return concatenate(parts).renumbered(), told


def _sorted(batch: Batch, number: int, when: GroupTest):
    """The groups that are kept and the others, each as (number of the batch, rows)."""
    outcomes = batch.outcomes()
    dropped = np.asarray(when(outcomes)) | np.isnan(outcomes).all(axis=1)
    places = [(number, rows) for rows in batch.groups]
    kept = [place for place, out in zip(places, dropped, strict=True) if not out]
    return kept, [place for place, out in zip(places, dropped, strict=True) if out]
