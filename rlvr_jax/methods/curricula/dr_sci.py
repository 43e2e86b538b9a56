"""Dr.SCI: mastered prompts leave the set and the easiest waiting ones enter; rubrics grade answers.

"Improving Data and Reward Design for Scientific Reasoning in Large Language Models" (only the text
was read)

    d(x)   pass rate of a reference model over 8 responses; d ≥ 1 is discarded, d ≤ 0.625 waits
    epoch  each x with accuracy above 0.9 leaves, and the easiest waiting prompt takes its place
    R      = (w_a j_a + Σ_i w_i j_i) / (w_a + Σ_i w_i) for open answers, else the verifier's outcome
    loss   = PPO's clip-higher on the token mean + 0.001 k3(π ‖ π_ref)

`rubric` lists the criteria of open answers, which are columns of the task's rewards. The paper's
weights are 1 for essential, 0.7 for important and 0.3 for optional criteria, 0.9 for avoided
pitfalls and 4 for the final answer. A criterion without a score leaves the mean. The printed
formula has argmin for the easiest; we follow the text. Without `meta["difficulty"]`, the initial
policy is the reference model. `experiments.traces --selected new_ngrams` stores the responses with
the most new 4-grams, which the authors imitate before training.

Left out: fine-tuning within the run, as it is a separate run on these traces.
Reports: Qwen3-4B base, in %: 63.2 on GPQA-diamond, 32.4 on its open form. 13.1k prompts per epoch
are about as good as all 100k.
Traps: 8 of 8 correct responses in one group count as mastered, which is noisy. Rewards of a rubric
are hardly ever equal, so filter groups by outcomes. The score of a pitfall must be 1 if it was
avoided, or its sign is reversed.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from rlvr_jax.experience import Curriculum, by_rubric, experience, shape
from rlvr_jax.experience.batch import ROUNDING
from rlvr_jax.experience.curricula.batches import requests_for
from rlvr_jax.experience.curricula.history import rated_rates, visits_of
from rlvr_jax.experience.curricula.picks import of_round, rarest_order
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.types import Criterion, Method, Recipe, Shown, part
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Count, Epsilon, KLCoefficient, Unit
from rlvr_jax.types.passing import arguments_of

DISCARDED, ACTIVE, WAITING = 0, 1, 2


class Mastery(NamedTuple):
    """The state of each of P prompts.

    Fields:
      active, waiting: bool [P], in the set, and in the queue.
      difficulty: float32 [P], pass rate of the reference model: larger is easier; NaN: unknown.
      total: float32 [P], sum of the pass rates of this epoch.
      times_sampled: int32 [P], times sampled in this epoch.
    """

    active: np.ndarray
    waiting: np.ndarray
    difficulty: np.ndarray
    total: np.ndarray
    times_sampled: np.ndarray


@part
def mastery_pool(mastered: Unit, pending: Unit, discard: Unit, samples: Count = 8) -> Curriculum:
    """Picks from a set of prompts that exchanges mastered prompts for the easiest waiting ones.

    Difficulty is `Prompt.meta["difficulty"]`. If a prompt has none, the initial policy rates all
    prompts in step 0, which trains on some of them at random. An epoch ends with the step in which
    every prompt of the set has been sampled. If no prompt is easy enough at first, the first set is
    the easiest waiting prompts, as many as one step takes.

    Args:
      mastered: accuracy in an epoch above which a prompt leaves.
      pending: pass rate of the reference model up to which a prompt waits.
      discard: pass rate from which on a prompt is discarded.
      samples: number of responses per rated prompt.
    Metrics: active_prompts (prompts of the pool), waiting_prompts (prompts that have not entered),
      mastered_prompts (prompts that left).
    """
    if not pending < discard:
        raise ValueError(f"mastery_pool: pending must be below discard {discard}, got {pending}")

    def first_set(difficulty, prompts) -> Mastery:
        stage = stages_by_difficulty(difficulty, pending, discard)
        active, waiting = stage == ACTIVE, stage == WAITING
        if not active.any():
            # The easiest waiting prompts; all prompts if none waits.
            easiest = np.argsort(-np.where(waiting, difficulty, -np.inf), kind="stable")
            active[easiest[: min(prompts, waiting.sum())]] = True
            waiting = waiting & ~active
            active = active if active.any() else np.ones_like(active)
        return _new_epoch(active, waiting, difficulty.astype(np.float32))

    def init(setting):
        known = [prompt.meta.get("difficulty", np.nan) for prompt in setting.task.train]
        difficulty = np.array(known, np.float32)
        if np.isnan(difficulty).any():
            every = np.ones(len(difficulty), bool)
            return _new_epoch(every, ~every, np.full(len(difficulty), np.nan, np.float32))
        return first_set(difficulty, setting.prompts)

    def propose(requests, state, turn):
        members = np.flatnonzero(state.active)
        order = members[rarest_order(turn.random(), state.times_sampled[members])]
        wanted = turn.setting.prompts
        short = len(order) < wanted * (turn.round + 1)
        asked = requests_for(turn, np.resize(order, wanted) if short else of_round(order, turn))
        if turn.step or turn.round or not np.isnan(state.difficulty).any():
            return asked
        ratings = requests_for(turn, range(len(state.active)))
        return [*(replace(request, samples=samples, rating=True) for request in ratings), *asked]

    def observe(state, turn, seen, learned):
        if turn.step == 0 and np.isnan(state.difficulty).any():
            # Ungraded prompts wait after all others.
            difficulty = np.zeros(len(state.active), np.float32)
            for number, rate in rated_rates(seen, len(difficulty)).items():
                difficulty[number] = rate
            return _with_metrics(first_set(difficulty, turn.setting.prompts), 0)
        total, count = state.total.copy(), state.times_sampled.copy()
        # Ungraded groups also count as sampled; otherwise the epoch would never end.
        for visit in visits_of(seen, len(total), undecided=True):
            total[visit.number] += np.nan_to_num(visit.rate)
            count[visit.number] += 1
        state = state._replace(total=total, times_sampled=count)
        if not (count[state.active] > 0).all():
            return _with_metrics(state, 0)
        accuracy = total / np.maximum(count, 1)
        after, waiting = exchanged(
            state.active, state.waiting, accuracy, state.difficulty, mastered
        )
        left = np.sum(state.active & ~after)
        return _with_metrics(_new_epoch(after, waiting, state.difficulty), left)

    return Curriculum(propose, init, observe)


def stages_by_difficulty(difficulty: np.ndarray, pending: float, discard: float) -> np.ndarray:
    """The first stage of each prompt: 0 discarded, 1 in the first set, 2 in the queue; int [P]."""
    return np.where(
        difficulty >= discard, DISCARDED, np.where(difficulty <= pending, WAITING, ACTIVE)
    )


def exchanged(
    active: np.ndarray,
    waiting: np.ndarray,
    accuracy: np.ndarray,
    difficulty: np.ndarray,
    mastered: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Set and queue after mastered prompts have left and as many waiting ones have entered.

    The easiest waiting prompts enter first, ties by index. If fewer wait, the last mastered prompts
    stay.

    Args:
      active: prompts in the set, bool [P].
      waiting: prompts in the queue, bool [P].
      accuracy: [P] of the epoch; NaN is not mastered.
      difficulty: [P], larger is easier.
      mastered: accuracy above which a prompt leaves the set, in [0, 1].
    """
    leaving = np.flatnonzero(active & (np.nan_to_num(accuracy) > mastered + ROUNDING))
    queue = np.flatnonzero(waiting)
    entering = queue[np.argsort(-difficulty[queue], kind="stable")]
    number = min(len(leaving), len(entering))
    active, waiting = active.copy(), waiting.copy()
    active[leaving[:number]] = False
    active[entering[:number]] = True
    waiting[entering[:number]] = False
    return active, waiting


def _new_epoch(active: np.ndarray, waiting: np.ndarray, difficulty: np.ndarray) -> Mastery:
    zeros = np.zeros(len(active), np.float32), np.zeros(len(active), np.int32)
    return Mastery(active, waiting, difficulty, *zeros)


def _with_metrics(state: Mastery, left: float) -> tuple[Mastery, dict[str, float]]:
    return state, {
        "active_prompts": float(state.active.sum()),
        "waiting_prompts": float(state.waiting.sum()),
        "mastered_prompts": float(left),
    }


@arguments_of(
    mastery_pool, "mastered", "pending", "discard", mastered=0.9, pending=0.625, discard=1.0
)
def dr_sci(
    rating_samples: Count = 8,
    rubric: Sequence[Criterion] = (),
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.28,
    kl_coefficient: KLCoefficient = 0.001,
    epsilon: Epsilon = 1e-6,
    **pool: Any,
) -> Recipe:
    """Applies GRPO to a set of prompts that exchanges mastered prompts for harder ones.

    Args:
      rating_samples: responses that estimate the pass rate if the task does not provide it.
      rubric: criteria of open answers; none: the outcome is the reward.
    """
    return Recipe(
        objective=clipped_objective(
            clip_low, clip_high, epsilon=epsilon, kl_coefficient=kl_coefficient
        ),
        experience=experience(
            mastery_pool(samples=rating_samples, **pool),
            stages=[shape(by_rubric(rubric))] if rubric else [],
        ),
    )


METHOD = Method(
    dr_sci,
    changes="curriculum, reward",
    evidence="reconstruction",
    shown=Shown("brackets:train=64", "experience/mastered_prompts"),
)
