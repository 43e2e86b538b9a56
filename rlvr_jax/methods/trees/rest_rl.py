"""ReST-RL: trains on prompts of varied outcomes and on continuations of their best responses.

"ReST-RL: Achieving Accurate Code Reasoning of LLMs with Optimized Self-Training and Decoding",
https://github.com/THUDM/ReST-RL

    5 responses to a prompt at T = 0.7; dropped if the standard deviation of outcomes is below 0.05
    if the best one has outcome ≥ 0.9: ⌈0.5 · lines⌉ of its prefixes, with chances ∝ 0.95^i
    R    = outcome + 0.001 where the response has ended
    loss = GRPO's clip on the token mean, of the prompts and of the prefixes

The authors do this in cycles over all prompts. Here some prompts are rated in every step, and the
results wait in a queue. The authors' penalty of 1e-6 for each character after the end cannot occur
here.

Left out: the tree search of decoding and its value model, a second model with a separate head. Both
serve test time and train no policy.
Reports: APPS, BigCodeBench, HumanEval: above GRPO and ReST-DPO in training (no numbers).
Traps: Prompts that are always or never solved are dropped before prefixes are made. A prefix may
repeat or be the whole response. A response of one line has no other prefixes.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from rlvr_jax.experience import Batch, Curriculum, Shaping, experience, shape, shaping
from rlvr_jax.experience.curricula.batches import order_of, requests_for
from rlvr_jax.experience.stages.rewards.score_steps import scored_steps
from rlvr_jax.experience.store import Store, empty_store, oldest, pop_oldest, push, taken
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.tasks.base import Prompt, StepScore, Task
from rlvr_jax.types import Method, Recipe, Shown, arguments_of, part
from rlvr_jax.types.hyperparameters import (
    Count,
    Finite,
    NonNegative,
    Positive,
    Share,
    Temperature,
    Unit,
)


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
    """Picks prompts of varied outcomes, and prefixes of their best responses.

    In every step some prompts are rated: answered separately and never trained. If the outcomes of
    a prompt vary enough the prompt enters a queue. If its best response is good enough, some of its
    prefixes enter as well: whole lines, short prefixes with higher chances. A step takes the oldest
    entries of the queue. While it is short, prompts of `shuffled_epochs` fill the step. Given lines
    are context and not trained. Lines are the task's steps (`Task.score_steps`), or end with a line
    break. A prefix that fills the budget is left out.

    Args:
      samples, temperature: number and sampling temperature of the rated responses.
      rated, spread, accept, ratio, decay, capacity: as for `rest_rl`.
    Metrics: queue (entries of the queue), accepted_prompts (fraction of the rated), new_prefixes
      (entries that are added), asked_prefixes (requests of the step that begin with lines).
    """

    def init(setting):
        whole, tokens = ((), np.int32), ((setting.response_tokens,), np.int32)
        return empty_store(capacity, number=whole, tokens=tokens, length=whole)

    def asked(state: Store, setting) -> np.ndarray:
        return oldest(state, setting.prompts)

    def propose(requests, state, turn):
        setting, order = turn.setting, order_of(turn.setting)
        if turn.round:
            return requests_for(turn, order.indices(turn.step, turn.round, setting.rounds))
        starts = taken(state, asked(state, setting))
        rows = zip(
            requests_for(turn, starts["number"]), starts["tokens"], starts["length"], strict=True
        )
        found = [replace(request, given=ids[:end].tolist()) for request, ids, end in rows]
        plain = order.indices(turn.step, 0, setting.rounds)[: setting.prompts - len(found)]
        chosen = turn.random().permutation(len(setting.task.train))[:rated]
        own = {"samples": samples, "rating": True, "temperature": temperature}
        ratings = [replace(request, **own) for request in requests_for(turn, chosen)]
        return [*ratings, *found, *requests_for(turn, plain)]

    def observe(state, turn, seen, learned):
        setting = turn.setting
        _, state = pop_oldest(state, len(asked(state, setting)))
        random, num_accepted, groups, new = turn.random(), 0, 0, 0
        for batch in seen:
            if not batch.requests[0].rating:
                continue
            outcomes = batch.outcomes()
            keep, best = varied(outcomes, spread), best_rows(outcomes)
            groups += len(keep)
            for group in np.flatnonzero(keep):
                row = int(batch.groups[group][best[group]])
                prefixes = [[]]
                if outcomes[group, best[group]] >= accept:
                    prefixes += _beginnings(batch, row, setting, ratio, decay, random)
                num_accepted, new = num_accepted + 1, new + len(prefixes) - 1
                state = push(state, _rows(batch.requests[row].number, prefixes, setting), turn.step)
        given = [len(learned.requests[rows[0]].given) > 0 for rows in learned.groups]
        metrics = {
            "queue": float(state.held),
            "accepted_prompts": num_accepted / max(groups, 1),
            "new_prefixes": float(new),
            "asked_prefixes": float(sum(given)),
        }
        return state, metrics

    return Curriculum(propose, init, observe)


def varied(outcomes: np.ndarray, least: float) -> np.ndarray:
    """Groups whose outcomes have a standard deviation (with n) of at least `least`, bool [G]."""
    return deviation(outcomes) >= least


def deviation(outcomes: np.ndarray) -> np.ndarray:
    """Standard deviation (with n) of the graded outcomes of each group, [G]."""
    known = ~np.isnan(outcomes)
    number = np.maximum(known.sum(axis=1), 1)
    mean = np.nansum(outcomes, axis=1) / number
    return np.sqrt(np.nansum((outcomes - mean[:, None]) ** 2, axis=1) / number)


def best_rows(outcomes: np.ndarray) -> np.ndarray:
    """The position of each group's best response, the first of equal ones; int [G]."""
    return np.argmax(np.where(np.isnan(outcomes), -np.inf, outcomes), axis=1)


def sub_samples(lines: int, ratio: float) -> int:
    """Number of prefixes that are sampled from a response: ⌈ratio · lines⌉."""
    return math.ceil(ratio * lines)


def prefix_chances(lines: int, decay: float) -> np.ndarray:
    """Chances of the prefixes of 1 … n lines, ∝ decay^i; [n]."""
    weight = decay ** np.arange(lines)
    return weight / weight.sum()


def _rows(number: int, prefixes: Sequence[Sequence[int]], setting) -> dict[str, np.ndarray]:
    tokens = np.zeros((len(prefixes), setting.response_tokens), np.int32)
    for row, ids in zip(tokens, prefixes, strict=True):
        row[: len(ids)] = ids
    lengths = np.array(list(map(len, prefixes)), np.int32)
    return {"number": np.full(len(prefixes), number, np.int32), "tokens": tokens, "length": lengths}


def _lines(prompt: Prompt, text: str) -> list[StepScore]:
    """Every line of a text as a step; blank ones count."""
    ends = [place + 1 for place, letter in enumerate(text) if letter == "\n"]
    if not ends or ends[-1] < len(text):
        ends.append(len(text))
    return [StepScore(end, 0.0) for end in ends if end > 0]


def _beginnings(
    batch: Batch, row: int, setting, ratio: float, decay: float, random: np.random.Generator
) -> list[list[int]]:
    """Tokens of some prefixes of a response."""
    task: Task = setting.task
    if task.score_steps is None:
        task = replace(task, score_steps=_lines)
    step, _, lines = scored_steps(batch.take(np.array([row])), task)
    if not lines:
        return []
    ends = [int(np.flatnonzero(step[0] == line).max(initial=-1)) + 1 for line in range(lines)]
    sampled = random.choice(lines, sub_samples(lines, ratio), p=prefix_chances(lines, decay))
    tokens = batch.rollouts.tokens[row]
    budget = setting.response_tokens
    return [tokens[: ends[line]].tolist() for line in sampled if 0 < ends[line] < budget]


@part
def ended_bonus(bonus: Finite) -> Shaping:
    """The outcome, plus a bonus for responses that were not truncated.

    Args:
      bonus: small relative to 1.
    Reads: outcome, truncated.
    """

    def reward(rollouts):
        ended = jnp.where(rollouts.truncated, 0, bonus)
        return rollouts.outcome + ended.astype(rollouts.outcome.dtype)

    return shaping(reward)


@arguments_of(clipped_objective, "clip_low", "clip_high", "epsilon")
def rest_rl(
    rated: Count = 64,
    rating_samples: Count = 5,
    rating_temperature: Temperature = 0.7,
    spread: NonNegative = 0.05,
    accept: Unit = 0.9,
    ratio: Positive = 0.5,
    decay: Share = 0.95,
    capacity: Count = 4096,
    bonus: Finite = 1e-3,
    **clip: Any,
) -> Recipe:
    """Applies GRPO to prompts of varied outcomes and prefixes of their best responses.

    Args:
      rated: number of prompts that are rated in each step; ours, the paper rates all in a cycle.
      rating_samples, rating_temperature: number and temperature of their responses.
      spread: smallest standard deviation of their outcomes.
      accept: outcome from which on the best response has prefixes.
      ratio: prefixes per line.
      decay: decay of the chance of a prefix from one line to the next.
      capacity: maximum number of entries of the queue.
      bonus: reward of a response that was not truncated.
    """
    starts = start_from_prefixes(
        rated, rating_samples, rating_temperature, spread, accept, ratio, decay, capacity
    )
    return Recipe(
        objective=clipped_objective(**clip),
        experience=experience(starts, stages=[shape(ended_bonus(bonus))]),
    )


METHOD = Method(
    rest_rl,
    changes="curriculum, sampling, reward",
    shown=Shown("brackets", "experience/asked_prefixes", steps=300),
)
