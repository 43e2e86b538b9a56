"""Groups that are sampled again under another view of their prompts, or replaced by others."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from rlvr_jax.experience.batch import Batch, GroupTest, concatenate
from rlvr_jax.experience.parts import Actor, Stage, StepContext, no_state
from rlvr_jax.experience.requests import View, shows_nothing
from rlvr_jax.experience.stages.donors.traces import own_rows
from rlvr_jax.experience.stages.rounds.another_view import under_another_view
from rlvr_jax.types.hyperparameters import Count
from rlvr_jax.types.parts import part


@part
def redraw(
    when: GroupTest,
    view: View,
    place: str = "replace",
    samples: int = 0,
    trained: View | None = None,
    plain: int = 0,
) -> Stage:
    """Samples groups again under another view of their prompts.

    Examples:
      >>> from rlvr_jax.experience import all_incorrect, redraw
      >>> from rlvr_jax.experience.views import hint
      >>> redraw(all_incorrect, hint(0.25))
      redraw(when=all_incorrect, view=hint(fraction=0.25))

    The new rows are trained in the context of their sampling, so their ratio is 1. With `trained`
    they are trained under another view, marked `off_policy`, with old log-probs of that view.

    Args:
      when: which groups are sampled again, such as `all_incorrect`.
      view: the new view, such as `hint(0.25)`.
      place: "replace" the rows, or "append" to them.
      samples: responses to each prompt; 0: as many as the group has.
      trained: view under which the new rows are trained; None: that of their sampling.
      plain: how many of the new rows, the last ones, are sampled from the plain prompt.
    Metrics: redrawn_fraction (groups that are sampled again), redrawn_as_it_was (of these groups,
      prompts that the view does not change), redrawn_solved (of them, with a correct new response).
    """

    def apply(batch, actor, state, turn):
        again = np.asarray(when(batch.outcomes()))
        metrics = {"redrawn_fraction": float(again.mean())}
        if trained is not None:
            batch = own_rows(batch)
        if not again.any():
            return batch, state, metrics
        first = [batch.requests[rows[0]] for rows in batch.groups]
        sizes = np.array([samples or len(rows) for rows in batch.answers.groups])
        shown = redrawn_rows(again, sizes, plain)
        requests = []
        chosen = [request for request, out in zip(first, again, strict=True) if out]
        for request, table, size in zip(chosen, shown[again], sizes[again], strict=True):
            hinted = int(table.sum())
            requests.append(replace(request, view=view, samples=hinted))
            if hinted < size:
                requests.append(replace(request, samples=int(size) - hinted, first_sample=hinted))
        metrics["redrawn_as_it_was"] = float(
            np.mean(
                [
                    shows_nothing(replace(request, view=view), turn.setting.task)
                    for request in chosen
                ]
            )
        )
        sampled = actor.grade(actor.draw(requests, turn.key))
        if plain:
            group = np.repeat(np.arange(len(sizes[again]), dtype=np.int32), sizes[again])
            sampled = sampled.with_rollouts(group=group).renumbered()
        solved = [any(sampled.grades[row].outcome == 1 for row in rows) for rows in sampled.groups]
        metrics["redrawn_solved"] = float(np.mean(solved))
        if trained is not None:
            sampled = under_another_view(sampled, actor, trained)
        return batch.with_groups(again, sampled, place), state, metrics

    return Stage(
        apply,
        views=(view,) if trained is None else (view, trained),
        writes=frozenset() if trained is None else frozenset({"off_policy"}),
        counts=plain > 0,
        most=2.0 if place == "append" else 1.0,
    )


def redrawn_rows(again: np.ndarray, samples: np.ndarray, plain: int) -> np.ndarray:
    """New rows that are sampled under the other view: all except the last `plain`, bool [G, N].

    Args:
      again: bool [G], groups that are sampled again.
      samples: int [G], new rows of each.
    """
    places = np.arange(max(samples.max(initial=0), 0))
    return again[:, None] & (places[None] < (samples - plain)[:, None])


@part
def refill(when: GroupTest, rounds: Count, stages: Sequence[Stage] = ()) -> Stage:
    """Samples further prompts until the batch is full of groups that are not dropped.

    Each round samples as many prompts as a step has. The first groups that are not dropped are
    used, in the order of sampling. After the last round, dropped groups fill the batch with a
    cleared mask, so that no statistic counts them.

    Args:
      when: dropped groups, such as `uniform`. Ungraded groups are always dropped.
      rounds: largest number of sampled batches, including the first.
      stages: applied to the batch of each round before groups are dropped, such as `redraw(…)`, or
        a stage that branches fewer sampled rows. They must have no state and not add trained rows.
    Metrics: refill/rounds (sampled batches), refill/accepted_fraction (of the sampled groups),
      refill/dropped_groups, refill/filled_with_dropped (groups); those of the stages (means over
      the rounds).
    Raises:
      ValueError: a stage has state, or adds trained rows.
    Source: Yu et al. 2025, https://arxiv.org/abs/2503.14476 (dynamic sampling).
    """
    for stage in stages:
        if stage.init is not no_state or stage.most != 1 or stage.rounds or stage.updates:
            raise ValueError(
                f"refill: stages must have no state and add no trained rows, got {stage.label}"
            )

    def size(samples: int) -> int:
        return functools.reduce(lambda number, stage: stage.size(number), stages[::-1], samples)

    def apply(batch, actor, state, turn):
        metrics: dict[str, list[float]] = {}

        def changed(batch):
            for stage in stages:
                batch, _, found = stage.apply(batch, actor, (), turn)
                for name, value in found.items():
                    metrics.setdefault(name, []).append(value)
            return batch

        prompts = turn.setting.prompts
        full, counts = refilled(
            batch, actor, turn, when, rounds, lambda *_: prompts, changed=changed
        )
        return full, state, counts | {name: float(np.mean(x)) for name, x in metrics.items()}

    return Stage(
        apply,
        reads=frozenset().union(*(stage.reads for stage in stages)),
        views=tuple(view for stage in stages for view in stage.views),
        size=size,
        writes=frozenset().union(*(stage.writes for stage in stages)),
        by_row=any(stage.by_row for stage in stages),
        counts=any(stage.counts for stage in stages),
        rounds=rounds - 1,
    )


def refilled(
    batch: Batch,
    actor: Actor,
    turn: StepContext,
    when: GroupTest,
    rounds: int,
    pool: Callable[[int, int, int], int],
    *,
    changed: Callable[[Batch], Batch] = lambda batch: batch,
) -> tuple[Batch, dict[str, float]]:
    """The batch of `refill`, with any number of prompts in a round, and metrics.

    Args:
      batch: the first round.
      actor: samples further rounds.
      turn: context of the step.
      when: groups that are selected.
      rounds: largest number of rounds, with the first.
      pool: (missing groups, selected groups, sampled groups) -> prompts of the next round.
      changed: (batch of a round) -> the batch whose groups are tested.
    """
    wanted = turn.setting.prompts
    batch = changed(batch)
    sampled = [batch]
    key = turn.setting.sampler_key(turn.step)
    selected, spare = _sorted(batch, 0, when)
    while len(selected) < wanted and len(sampled) < rounds:
        requests = turn.more(
            pool(wanted - len(selected), len(selected), len(selected) + len(spare))
        )
        if not requests:
            break
        sampled.append(changed(actor.grade(actor.draw(requests, key))))
        more = _sorted(sampled[-1], len(sampled) - 1, when)
        selected, spare = selected + more[0], spare + more[1]
    metrics = {
        "refill/rounds": len(sampled),
        "refill/accepted_fraction": len(selected) / (len(selected) + len(spare)),
        "refill/dropped_groups": len(spare),
        "refill/filled_with_dropped": max(0, wanted - len(selected)),
    }
    if len(sampled) == 1 and len(batch.groups) <= wanted:
        dropped = [row for _, rows in spare for row in rows]
        return batch.without(np.isin(np.arange(len(batch)), dropped)), metrics
    parts = [sampled[number].take(rows) for number, rows in selected[:wanted]]
    for number, rows in spare[: wanted - len(parts)]:
        dropped = sampled[number].take(rows)
        parts.append(dropped.without(np.ones(len(dropped), bool)))
    return concatenate(parts).renumbered(), metrics


def _sorted(batch: Batch, number: int, when: GroupTest):
    """The selected and the dropped groups, each as (number of the batch, rows)."""
    outcomes = batch.outcomes()
    dropped = np.asarray(when(outcomes)) | np.isnan(outcomes).all(axis=1)
    places = [(number, rows) for rows in batch.groups]
    selected = [place for place, out in zip(places, dropped, strict=True) if not out]
    return selected, [place for place, out in zip(places, dropped, strict=True) if out]
