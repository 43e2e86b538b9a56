"""Abstractions: what the policy says that helps with a problem, and how it solves it with them."""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np

from rlvr_jax.experience.batch import concatenate
from rlvr_jax.experience.parts import Stage
from rlvr_jax.experience.stages.problems.written import SOLVE, WRITE, earned, with_request
from rlvr_jax.experience.views import with_note
from rlvr_jax.tasks.hints import gives_away
from rlvr_jax.types.hyperparameters import Count
from rlvr_jax.types.parts import part

__all__ = ["abstraction_rewards", "discover_abstractions"]

UNAIDED = 2
"""The cell of answers to a prompt as it is."""

REQUEST = (
    "Do not solve this. Write in one or two sentences what one has to know or do to solve it,"
    " without the answer."
)


def abstraction_rewards(outcome: np.ndarray, leaks: np.ndarray) -> np.ndarray:
    """The mean outcome of the solutions with each abstraction, 0 for one that gives the answer.

    Args:
      outcome: [X, m, n], NaN without a verdict.
      leaks: bool [X, m].
    Returns:
      [X, m].
    """
    known = ~np.isnan(outcome)
    mean = np.nansum(outcome, axis=-1) / np.maximum(known.sum(axis=-1), 1)
    return np.where(leaks, 0, mean)


@part(
    writes=frozenset({"cell"}),
    by_row=True,
    counts=True,
    most=3.0,
    views=(with_request(REQUEST, ""), replace(with_note(""), responses=1)),
)
def discover_abstractions(abstractions: Count, unaided: Count = 4) -> Stage:
    """Has the policy write abstractions of each prompt, and solve it with each of them.

    Of N samples of a group, N / m solve with each of the m abstractions; N / u more are answers to
    the prompt as it is, which are drawn first and earn 0 alike, so that nothing but a KL sees them.
    What was written earns the mean outcome of its solutions, 0 if it holds the answer. Groups are
    the abstractions of a prompt, the solutions with one abstraction, the unaided answers of a
    prompt; cells (`Rollouts.cell`) 0 solve, 1 write, 2 are unaided.

    Args:
      abstractions: m, which must divide the samples of a group.
      unaided: u.
    Reads: outcome, Prompt.gold, answer, texts. Writes: cell, reward of unaided rows. Metrics:
      abstraction_reward, leaking_abstractions (share), aided_rate, unaided_rate (pass rates).
    Raises:
      ValueError: a number below 1; when a run is set up, samples that m does not divide.
    Source: RLAD (the link stands in the method's card).
    """

    def size(samples):
        if samples % abstractions:
            raise ValueError(
                f"discover_abstractions: abstractions must divide the {samples} samples of a group,"
                f" got {abstractions}"
            )
        return max(1, samples // unaided)

    def apply(batch, actor, state, turn):
        each = turn.setting.samples // abstractions
        plain = batch.asks_of(np.ones(len(batch.groups), bool))
        asks = [replace(a, view=with_request(REQUEST, ""), samples=abstractions) for a in plain]
        written = actor.draw(asks, turn.key)
        texts = [response.text for response in written.responses]
        aided = [
            replace(ask, view=with_note(text), samples=each, first_sample=place * each)
            for place, (ask, text) in enumerate(zip(written.asks, texts, strict=True))
        ]
        solved = actor.grade(actor.draw(aided, jax.random.fold_in(turn.key, 1)))
        outcome = solved.outcomes().reshape(len(plain), abstractions, each)
        leaks = [
            not text.strip() or gives_away(text, ask.prompt)
            for ask, text in zip(written.asks, texts, strict=True)
        ]
        reward = abstraction_rewards(outcome, np.reshape(leaks, outcome.shape[:2]))
        written = earned(written, reward.ravel(), WRITE)
        solved = solved.with_rollouts(cell=np.full(len(solved), SOLVE, np.int32))
        nothing = np.zeros_like(batch.rollouts.reward)
        cells = np.full(len(batch), UNAIDED, np.int32)
        told = {
            "abstraction_reward": float(reward.mean()),
            "leaking_abstractions": float(np.mean(leaks)),
        }
        for name, found in (("aided_rate", solved), ("unaided_rate", batch)):
            if found.decided.any():
                told[name] = float(found.rollouts.outcome[found.decided].mean())
        unaided_rows = batch.with_rollouts(cell=cells, reward=nothing)
        return concatenate([written, solved, unaided_rows]), state, told

    return Stage(apply, size=size)
