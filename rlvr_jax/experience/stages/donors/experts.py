"""Answers of several experts to one prompt: one group, and the worst one's prompt beside the best's
answers; and hard prompts, whose solutions all of them imitate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rlvr_jax.experience.asks import Ask, View
from rlvr_jax.experience.parts import Stage
from rlvr_jax.experience.stages.donors.imitate_right import to_imitate
from rlvr_jax.experience.stages.rewards.second_prompt import GIVES
from rlvr_jax.experience.store import empty_store, pop_oldest, push
from rlvr_jax.objectives import teaching_rows
from rlvr_jax.tasks import Grade
from rlvr_jax.types.hyperparameters import Count, Unit
from rlvr_jax.types.parts import part

__all__ = ["hard_groups", "imitate_hard", "join_groups", "show_to_worst"]


@part(by_row=True)
def join_groups() -> Stage:
    """Makes one group of the groups next to each other that answer one prompt of a round.

    Metrics: joined_groups (groups behind it per group before it).
    """

    def apply(batch, actor, state, turn):
        del actor, turn
        first = [batch.asks[rows[0]] for rows in batch.groups]
        keys = [(ask.number, ask.round) for ask in first]
        fresh = [one != two for one, two in zip(keys, [None, *keys[:-1]], strict=True)]
        number = np.cumsum(fresh).astype(np.int32) - np.int32(1)
        group = np.repeat(number, list(map(len, batch.groups)))
        told = {"joined_groups": sum(fresh) / len(fresh)}
        return batch.with_rollouts(group=group).renumbered(), state, told

    return apply


@part(writes=GIVES | {"cell"}, by_row=True)
def show_to_worst(views: Sequence[View]) -> Stage:
    """Gives the right answers of a group's best expert the worst one's prompt as their second one.

    Args:
      views: of the experts, by their cells.
    Reads: reward, outcome, group, cell. Writes: second_tokens, second_length. Metrics:
      teaching_rows (share of the rows).
    Source: MEML-GRPO (the link stands in the method's card).
    """

    def apply(batch, actor, state, turn):
        del turn
        rollouts = batch.rollouts
        teaching = teaching_rows(rollouts.reward, rollouts.outcome, rollouts.group, rollouts.cell)
        there, worst = np.asarray(teaching.rows), np.asarray(teaching.worst)
        asks = [replace(ask, view=views[w]) for ask, w in zip(batch.asks, worst, strict=True)]
        tokens, length = actor.prompts(asks)
        second = {
            "second_tokens": np.where(there[:, None], tokens, 0).astype(tokens.dtype),
            "second_length": np.where(there, length, 0).astype(length.dtype),
        }
        return batch.with_rollouts(**second), state, {"teaching_rows": float(there.mean())}

    needs = frozenset().union(*(view.reads for view in views))
    return Stage(apply, reads=needs, views=tuple(views))


def hard_groups(outcomes: np.ndarray, wrong_above: float) -> np.ndarray:
    """Groups of whose answers a larger share than `wrong_above` is wrong, bool [G].

    Args:
      outcomes: [G, N], NaN without a verdict; right is above ½.
    """
    known = ~np.isnan(outcomes)
    wrong = (known & ~(np.nan_to_num(outcomes) > 0.5)).sum(axis=1)
    return wrong > wrong_above * np.maximum(known.sum(axis=1), 1)


@part
def imitate_hard(
    views: Sequence[View], wrong_above: Unit, probability: Unit, capacity: Count
) -> Stage:
    """Keeps hard prompts, and imitates their solutions under every view once there are enough.

    A prompt of whose answers a larger share than `wrong_above` is wrong is put into the buffer with
    some probability. When the buffer is full, it is emptied, and the worked solutions of its
    prompts, behind the prompt of each view, are rows to imitate in an update of their own. Train
    prompts alone are kept.

    Args:
      views: of the experts.
      wrong_above: share, in [0, 1].
      probability: with which a hard prompt is kept, in [0, 1].
      capacity: prompts of the buffer.
    Reads: outcome, Prompt.solution. Writes: supervised; `Batch.further`, of supervised rows.
    Metrics: hard_groups (share), kept_prompts (that wait), imitated_solutions (rows),
      solutions_too_long (prompts).
    Raises:
      ValueError: a share or probability outside [0, 1], no capacity.
    Source: MEML-GRPO (the link stands in the method's card).
    """

    def init(setting):
        return empty_store(capacity + setting.prompts, number=((), np.int32))

    def apply(batch, actor, state, turn):
        train = turn.setting.task.train
        hard = hard_groups(batch.outcomes(), wrong_above)
        lucky = turn.random().uniform(size=len(hard)) < probability
        asks = batch.asks_of(hard & lucky)
        numbers = [a.number for a in asks if a.number < len(train) and train[a.number] is a.prompt]
        if numbers:
            state = push(state, {"number": np.array(numbers, np.int32)}, turn.step)
        batch = batch.with_rollouts(supervised=np.zeros(len(batch), bool))
        further, long = list(batch.further), 0
        if state.held >= capacity:
            rows, state = pop_oldest(state, capacity)
            solved, long = _solutions(actor, train, rows["number"], turn.setting.response_tokens)
            further += [solved] if solved is not None else []
        told = {
            "hard_groups": float(hard.mean()),
            "kept_prompts": float(state.held),
            "imitated_solutions": float(sum(map(len, further))),
            "solutions_too_long": float(long),
        }
        return replace(batch, further=further), state, told

    def _solutions(actor, train, numbers, most):
        stop = actor.stop_token()
        asks, tokens = [], []
        for number in numbers.tolist():
            ids = [*actor.encode("".join(train[number].solution)), stop]
            if len(ids) <= most:
                asks += [
                    Ask(train[number], number, 1, view=view, cell=cell)
                    for cell, view in enumerate(views)
                ]
                tokens += [ids] * len(views)
        long = len(numbers) - len(asks) // len(views)
        if not asks:
            return None, long
        rows = to_imitate(actor.written(asks, tokens), np.ones(len(asks), bool))
        cells = np.array([ask.cell for ask in asks], np.int32)
        length = np.zeros_like(rows.rollouts.prompt_length)
        second = {"second_tokens": np.zeros_like(rows.rollouts.prompt_tokens)}
        rows = rows.with_rollouts(cell=cells, second_length=length, **second)
        return replace(rows, grades=[Grade(None)] * len(rows)), long

    needs = frozenset({"solution"}).union(*(view.reads for view in views))
    return Stage(
        apply,
        init,
        reads=needs,
        views=tuple(views),
        writes=frozenset({"supervised"}),
        updates=1,
        by_row=True,
    )
