"""RLAD: one policy writes abstractions of a problem, and solves it with them in the prompt.

"RLAD: Training LLMs to Discover Abstractions for Solving Reasoning Problems" (only the abstract was
read)

    m abstractions of each problem;  n solutions with each;  some answers without any
    R of an abstraction = mean outcome of its solutions, 0 if it contains the answer
    A_i  = (R_i - mean) / (std + 1e-6) over the abstractions of a problem, and over the solutions
           with one abstraction; answers without an abstraction earn nothing
    loss = mean_t [max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) + β k3(π ‖ π_ref)]

Responses without an abstraction have only the KL, so that ignoring abstractions is not rewarded. A
reconstruction: m = 4, and with 16 samples n = 4 and 4 more without an abstraction are ours. The
authors' warm start, on abstractions of a stronger model, is `imitate_solutions`.

Left out: the warm start by abstractions of a stronger model, as none ships; two sets of weights, as
a run trains one policy.
Reports: At large budgets, more compute for abstractions is better than more solutions. AIME25:
about 44 % (relative) over DAPO, second hand.
Traps: Only abstractions with the exact words of the answer are found to reveal it. With few
solutions, an abstraction's reward is mostly noise. Without a warm start, all abstractions may earn
equal rewards.
"""

from dataclasses import replace
from typing import Any

import jax
import numpy as np

from rlvr_jax.experience import PLAIN, Stage, concatenate, experience
from rlvr_jax.experience.stages.problems.written import SOLVE, WRITE, earned
from rlvr_jax.experience.views import requesting, with_note
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.tasks.derived.hints import gives_away
from rlvr_jax.types import Method, Recipe, Shown, part
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Count, Epsilon, KLCoefficient
from rlvr_jax.types.passing import arguments_of

UNAIDED = 2
"""The cell of responses to the plain prompt."""

REQUEST = (
    "Do not solve this. Write in one or two sentences what one has to know or do to solve it,"
    " without the answer."
)


@part(
    writes=frozenset({"cell"}),
    by_row=True,
    counts=True,
    most=3.0,
    views=(requesting(PLAIN, REQUEST), replace(with_note(""), responses=1)),
)
def discover_abstractions(abstractions: Count, unaided: Count = 4) -> Stage:
    """The policy writes abstractions of each prompt, and solves it with each of them.

    Of the N samples of a group, N / m solve with each of the m abstractions. N / u more are
    responses to the plain prompt, which are sampled first and all earn 0, so only a KL acts on
    them. An abstraction earns the mean outcome of its solutions, 0 if it contains the answer.
    Groups are: the abstractions of a prompt, the solutions with one abstraction, the unaided
    responses to a prompt. Cells (record `cell`): 0 solve, 1 write, 2 unaided.

    Args:
      abstractions: abstractions per prompt (m), a divisor of the samples of a group.
      unaided: solutions with an abstraction per response without one (u).
    Reads: outcome, Prompt.gold, answer, texts. Writes: cell, reward of unaided rows.
    Metrics: abstraction_reward (mean reward of abstractions), leaking_abstractions (fraction of the
      abstractions), aided_rate, unaided_rate (pass rates).
    Raises:
      ValueError: when a run is set up, samples that m does not divide.
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
        plain = batch.requests_of(np.ones(len(batch.groups), bool))
        requests = [
            replace(a, view=requesting(PLAIN, REQUEST), samples=abstractions) for a in plain
        ]
        written = actor.draw(requests, turn.key)
        texts = [response.text for response in written.responses]
        aided = [
            replace(request, view=with_note(text), samples=each, first_sample=place * each)
            for place, (request, text) in enumerate(zip(written.requests, texts, strict=True))
        ]
        solved = actor.grade(actor.draw(aided, jax.random.fold_in(turn.key, 1)))
        outcome = solved.outcomes().reshape(len(plain), abstractions, each)
        leaks = [
            not text.strip() or gives_away(text, request.prompt)
            for request, text in zip(written.requests, texts, strict=True)
        ]
        reward = abstraction_rewards(outcome, np.reshape(leaks, outcome.shape[:2]))
        written = earned(written, reward.ravel(), WRITE)
        solved = solved.with_rollouts(cell=np.full(len(solved), SOLVE, np.int32))
        cells = np.full(len(batch), UNAIDED, np.int32)
        metrics = {
            "abstraction_reward": float(reward.mean()),
            "leaking_abstractions": float(np.mean(leaks)),
        }
        for name, found in (("aided_rate", solved), ("unaided_rate", batch)):
            if found.decided.any():
                metrics[name] = float(found.rollouts.outcome[found.decided].mean())
        unaided_rows = batch.rewarded(0).with_rollouts(cell=cells)
        return concatenate([written, solved, unaided_rows]), state, metrics

    return Stage(apply, size=size)


def abstraction_rewards(outcome: np.ndarray, leaks: np.ndarray) -> np.ndarray:
    """Mean graded outcome [X, m, n] of each abstraction's solutions; 0 if it leaks, [X, m]."""
    known = ~np.isnan(outcome)
    mean = np.nansum(outcome, axis=-1) / np.maximum(known.sum(axis=-1), 1)
    return np.where(leaks, 0, mean)


@arguments_of(discover_abstractions, abstractions=4)
def rlad(
    kl_coefficient: KLCoefficient = 0.001,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
    **samples: Any,
) -> Recipe:
    """Applies GRPO to writing abstractions and to solving with them, by one policy."""
    return Recipe(
        objective=clipped_objective(
            clip_low, clip_high, epsilon=epsilon, kl_coefficient=kl_coefficient
        ),
        experience=experience(stages=[discover_abstractions(**samples)]),
    )


METHOD = Method(
    rlad,
    changes="sampling, reward, guidance",
    evidence="reconstruction",
    shown=Shown(
        "arithmetic",
        "experience/abstraction_reward",
        settings={
            "model": "smollm2",
            "response_tokens": 20,
            "prompts_per_step": 4,
            "samples_per_prompt": 8,
            "micro_batches": 4,
            "learning_rate": 1e-5,
        },
        hyperparameters={"abstractions": 2},
        steps=24,
        within=1,
    ),
)
