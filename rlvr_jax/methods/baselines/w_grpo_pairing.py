"""Weighted GRPO on pairs: one hard but solvable and one easy but brittle prompt per update.

"Beyond Variance: Prompt-Efficient RLVR via Rare-Event Amplification and Bidirectional Pairing",
https://arxiv.org/abs/2602.03452

    R_i  = 1 if correct, -λ if incorrect;    A_i = R_i - mean over the group
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ n_i

Prompts are chosen once, by the pass rate p of the initial policy on G responses. The hard prompt
has few successes: p in [1/G, c/G]. The easy prompt has few failures: p in [1 - c/G, 1 - 1/G]. Later
steps alternate between the two; a step of two prompts is the paper's pair per update. A step
without a pair rates `candidates` prompts and trains on other prompts. The pair does not change,
even when both prompts are solved.

Advantages that are standardized per prompt (`group_normalized`) do not depend on λ. Without the
standard deviation, as here, λ has an effect. It also has one with statistics over the pair
(`pair_normalized`), which amplify rare events less. A reconstruction from the abstract and a note:
λ, c, clip and centered form are ours.

Reports: Qwen2.5-Math-7B, one pair, in %: AIME25 pass@8 rises from 16.8 to 22.2 over a pair chosen
by variance, AMC23 pass@64 from 94.0 to 97.0. This is near training on 1209 prompts.
Traps: The hard prompt is reportedly of AIME 2025, which is then not a test. Once both prompts are
solved, nothing is trained.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rlvr_jax.experience import Curriculum, experience, shape
from rlvr_jax.experience.curricula.batches import requests_for, shuffled_epochs
from rlvr_jax.experience.curricula.history import visits_of
from rlvr_jax.experience.curricula.picks import rarest_order
from rlvr_jax.objectives import Transform, clipped_objective, group_centered, rollout_advantage
from rlvr_jax.objectives.statistics.group_order import group_index
from rlvr_jax.objectives.statistics.groups import group_has_tokens, group_z_score
from rlvr_jax.types import Function, Method, Recipe, Shown, is_correct, part
from rlvr_jax.types.hyperparameters import (
    ClipHigh,
    ClipLow,
    Count,
    Epsilon,
    NonNegative,
    NonNegativeInt,
)


@part
def rare_event_pair(most: Count, candidates: NonNegativeInt) -> Curriculum:
    """Alternates between one hard but solvable and one easy but brittle prompt.

    Pass rates are those of the first group of each prompt: of the `candidates` that a step rates,
    and of the prompts it trains on. Until a pair is found, steps train on shuffled epochs.

    Metrics: rated_prompts (prompts), pair/hard, pair/easy (numbers of the two prompts, after a
      pair is found), pair/hard_rate, pair/easy_rate (their first pass rates).
    """
    epochs = shuffled_epochs()

    def init(setting):
        none = np.zeros(len(setting.task.train), np.int32)
        return _State(none, none, np.full(2, -1, np.int32))

    def propose(requests, state, turn):
        if (state.pair >= 0).all():
            return requests_for(turn, np.resize(state.pair, turn.setting.prompts))
        trained = epochs.propose(requests, (), turn)
        if turn.round:
            return trained
        order = rarest_order(turn.random(), state.answers)
        new = (state.answers[order] == 0) & ~np.isin(order, [request.number for request in trained])
        rated = requests_for(turn, order[new][:candidates])
        return [*(replace(request, rating=True) for request in rated), *trained]

    def observe(state, turn, seen, learned):
        if (state.pair >= 0).all():
            return state, _metrics(state)
        correct, answers = state.correct.copy(), state.answers.copy()
        for visit in visits_of(seen, len(answers)):
            if not answers[visit.number]:
                correct[visit.number] = np.sum(is_correct(visit.outcomes))
                answers[visit.number] = len(visit.outcomes)
        pair = choose_pair(correct, answers, most)
        pair = np.array(pair if min(pair) >= 0 else (-1, -1), np.int32)
        state = _State(correct, answers, pair)
        return state, _metrics(state)

    return Curriculum(propose, init, observe)


class _State(NamedTuple):
    """Correct and all responses of each prompt's rating; the pair, -1 before there is one."""

    correct: np.ndarray
    answers: np.ndarray
    pair: np.ndarray


def _metrics(state: _State) -> dict[str, float]:
    metrics = {"rated_prompts": float((state.answers > 0).sum())}
    for name, number in zip(("hard", "easy"), state.pair.tolist(), strict=True):
        if number >= 0:
            metrics[f"pair/{name}"] = float(number)
            metrics[f"pair/{name}_rate"] = float(state.correct[number] / state.answers[number])
    return metrics


def choose_pair(correct: np.ndarray, rated: np.ndarray, most: int) -> tuple[int, int]:
    """The hard prompt of lowest and the easy one of highest pass rate, -1 where there is none.

    Ties keep the order of the prompts. A prompt that is both is the hard one.
    """
    rate = correct / np.maximum(rated, 1)
    hard = np.flatnonzero(is_rare(correct, most))
    first = int(hard[np.argmin(rate[hard])]) if len(hard) else -1
    easy = np.flatnonzero(is_rare(rated - correct, most))
    easy = easy[easy != first]
    return first, int(easy[np.argmax(rate[easy])]) if len(easy) else -1


def is_rare(number: np.ndarray, most: int) -> np.ndarray:
    """Whether a prompt has 1 to c successes, or failures; bool [P]."""
    return (number >= 1) & (number <= most)


@part
def penalized_outcome(negative: NonNegative) -> Function:
    """R = 1 for an outcome of 1, -λ for 0, linear between: (1 + λ) · outcome - λ."""
    return lambda rollouts: (1 + negative) * rollouts.outcome - negative


@part
def pair_normalized(epsilon: Epsilon = 1e-6) -> Transform:
    """A_i = (R_i - mean) / (std + ε) over the rollouts of two prompts; std with n - 1.

    Groups with tokens are paired in the order of their ids: the first with the second, and so on.
    The last of an odd number has no partner. In a pair of equal rewards A is 0.
    """

    def advantage(rollouts):
        counted = group_has_tokens(rollouts.mask, rollouts.group)
        pair = group_index(rollouts.group, counted) // 2
        return group_z_score(rollouts.reward, pair, epsilon, counted)

    return rollout_advantage(advantage)


def w_grpo_pairing(
    negative: NonNegative = 2.0,
    most: Count = 2,
    candidates: NonNegativeInt = 128,
    estimator: Callable[[], Transform] = group_centered,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.28,
) -> Recipe:
    """Applies clip-higher with the token mean; the penalty of an incorrect response is λ.

    Args:
      negative: penalty of an incorrect response (λ).
      most: maximum number of correct responses of the hard prompt, and of incorrect ones of the
        easy prompt (c).
      candidates: number of prompts rated per step until a pair is found.
      estimator: `group_centered`, `group_normalized` or `pair_normalized`.
    """
    return Recipe(
        objective=clipped_objective(clip_low, clip_high, advantage=estimator()),
        experience=experience(
            curriculum=rare_event_pair(most, candidates),
            stages=[shape(penalized_outcome(negative))],
        ),
    )


METHOD = Method(
    w_grpo_pairing,
    changes="reward, advantage, curriculum",
    evidence="reconstruction",
    shown=Shown("brackets", "experience/pair/hard_rate"),
)
