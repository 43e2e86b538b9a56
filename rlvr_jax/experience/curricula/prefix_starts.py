"""Prompts whose answers differ, and beginnings of their best answers as prompts of their own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rlvr_jax.experience.asks import Ask
from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.curricula.batches import order_of
from rlvr_jax.experience.parts import Curriculum
from rlvr_jax.experience.stages.rewards.score_steps import scored_steps
from rlvr_jax.experience.store import Store, empty_store, oldest, pop_oldest, push, taken
from rlvr_jax.tasks import Prompt, StepScore, Task
from rlvr_jax.types.hyperparameters import Count, NonNegative, Positive, Share, Unit
from rlvr_jax.types.parts import part

__all__ = [
    "best_rows",
    "deviation",
    "prefix_chances",
    "start_from_prefixes",
    "sub_samples",
    "varied",
]


def varied(outcomes: np.ndarray, least: float) -> np.ndarray:
    """Groups whose outcomes have a standard deviation (with n) of at least `least`, bool [G]."""
    return deviation(outcomes) >= least


def deviation(outcomes: np.ndarray) -> np.ndarray:
    """Standard deviation (with n) of the outcomes of each group that have a verdict, [G]."""
    known = ~np.isnan(outcomes)
    number = np.maximum(known.sum(axis=1), 1)
    mean = np.nansum(outcomes, axis=1) / number
    return np.sqrt(np.nansum((outcomes - mean[:, None]) ** 2, axis=1) / number)


def best_rows(outcomes: np.ndarray) -> np.ndarray:
    """The place of each group's best answer, the first of equal ones; int [G]."""
    return np.argmax(np.where(np.isnan(outcomes), -np.inf, outcomes), axis=1)


def sub_samples(lines: int, ratio: float) -> int:
    """How many beginnings are drawn of an answer with so many lines: ⌈ratio · lines⌉."""
    return math.ceil(ratio * lines)


def prefix_chances(lines: int, decay: float) -> np.ndarray:
    """Chances of the beginnings of 1 … n lines, ∝ decay^i: early ones first; [n]."""
    weight = decay ** np.arange(lines)
    return weight / weight.sum()


@part
def start_from_prefixes(
    rated: Count,
    samples: Count,
    temperature: Positive,
    spread: NonNegative,
    accept: Unit,
    ratio: Positive,
    decay: Share,
    capacity: Count,
) -> Curriculum:
    """Asks prompts whose answers differ, and what begins as their best answers do.

    In every step some prompts are rated, answered apart and never trained. Of those whose outcomes
    spread far enough the prompt itself is put into a queue; if its best answer is good, beginnings
    of that are drawn, whole lines, early ones with higher chances, and put behind it. A step asks
    the oldest of the queue; while it is short the prompts of `shuffled_epochs` come first. Given
    lines are context and not learned from. Lines are the task's steps (`Task.score_steps`), or end
    with a line break; a beginning that leaves no room for an answer is left out.

    Args:
      rated: prompts of each step.
      samples, temperature: of their answers.
      spread: least standard deviation of the outcomes.
      accept: outcome of the best answer from which on it is cut.
      ratio: beginnings for each of its lines.
      decay: of the chance from one line to the next, in (0, 1].
      capacity: of the queue; of more the newest stay.
    Metrics: queue (starts that wait), kept_prompts (share of the rated), new_prefixes,
      asked_prefixes (asks of the step that begin with lines).
    Raises:
      ValueError: a number below 1, a temperature or ratio that is not positive, a negative spread,
        an outcome outside [0, 1], a decay outside (0, 1].
    Source: ReST-RL, https://github.com/THUDM/ReST-RL.
    """

    def init(setting):
        whole, tokens = ((), np.int32), ((setting.response_tokens,), np.int32)
        return empty_store(capacity, number=whole, tokens=tokens, length=whole)

    def asked(state: Store, setting) -> np.ndarray:
        return oldest(state, setting.prompts)

    def propose(asks, state, turn):
        del asks
        setting, train = turn.setting, turn.setting.task.train
        order = order_of(setting)
        if turn.round:
            numbers = order.indices(turn.step, turn.round, setting.rounds)
            return [_ask(train, n, turn, setting.drawn_samples) for n in numbers]
        starts = taken(state, asked(state, setting))
        found = [
            replace(_ask(train, number, turn, setting.drawn_samples), given=ids[:end].tolist())
            for number, ids, end in zip(*(starts[key] for key in _FIELDS), strict=True)
        ]
        plain = order.indices(turn.step, 0, setting.rounds)[: setting.prompts - len(found)]
        found += [_ask(train, number, turn, setting.drawn_samples) for number in plain]
        chosen = turn.random().permutation(len(train))[:rated]
        ratings = [
            replace(_ask(train, n, turn, samples), rating=True, temperature=temperature)
            for n in chosen
        ]
        return [*ratings, *found]

    def observe(state, turn, seen, learned):
        setting = turn.setting
        _, state = pop_oldest(state, len(asked(state, setting)))
        random, kept, groups, new = turn.random(), 0, 0, 0
        for batch in seen:
            if not batch.asks[0].rating:
                continue
            outcomes = batch.outcomes()
            keep, best = varied(outcomes, spread), best_rows(outcomes)
            groups += len(keep)
            for group in np.flatnonzero(keep):
                row = int(batch.groups[group][best[group]])
                begun = [[]]
                if outcomes[group, best[group]] >= accept:
                    begun += _beginnings(batch, row, setting, ratio, decay, random)
                kept, new = kept + 1, new + len(begun) - 1
                state = push(state, _rows(batch.asks[row].number, begun, setting), turn.step)
        given = [len(learned.asks[rows[0]].given) > 0 for rows in learned.groups]
        told = {
            "queue": float(state.held),
            "kept_prompts": kept / max(groups, 1),
            "new_prefixes": float(new),
            "asked_prefixes": float(sum(given)),
        }
        return state, told

    return Curriculum(propose, init, observe)


_FIELDS = ("number", "tokens", "length")


def _ask(train: Sequence[Prompt], number: int, turn, samples: int) -> Ask:
    return Ask(train[number], int(number), samples, round=turn.round)


def _rows(number: int, begun: Sequence[Sequence[int]], setting) -> dict[str, np.ndarray]:
    tokens = np.zeros((len(begun), setting.response_tokens), np.int32)
    for row, ids in zip(tokens, begun, strict=True):
        row[: len(ids)] = ids
    lengths = np.array(list(map(len, begun)), np.int32)
    return {"number": np.full(len(begun), number, np.int32), "tokens": tokens, "length": lengths}


def _lines(prompt: Prompt, text: str) -> list[StepScore]:
    """Every line of a text as a step; blank ones count."""
    del prompt
    ends = [place + 1 for place, letter in enumerate(text) if letter == "\n"]
    if not ends or ends[-1] < len(text):
        ends.append(len(text))
    return [StepScore(end, 0.0) for end in ends if end > 0]


def _beginnings(
    batch: Batch, row: int, setting, ratio: float, decay: float, random: np.random.Generator
) -> list[list[int]]:
    """Tokens of some beginnings of an answer."""
    task: Task = setting.task
    if task.score_steps is None:
        task = replace(task, score_steps=_lines)
    step, _, lines = scored_steps(batch.take(np.array([row])), task)
    if not lines:
        return []
    ends = [int(np.flatnonzero(step[0] == line).max(initial=-1)) + 1 for line in range(lines)]
    drawn = random.choice(lines, sub_samples(lines, ratio), p=prefix_chances(lines, decay))
    tokens = batch.rollouts.tokens[row]
    room = setting.response_tokens
    return [tokens[: ends[line]].tolist() for line in drawn if 0 < ends[line] < room]
