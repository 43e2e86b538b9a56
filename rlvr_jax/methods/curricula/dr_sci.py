"""Dr.SCI: mastered prompts leave the set, the easiest waiting ones enter it; rubrics for the rest.

"Improving Data and Reward Design for Scientific Reasoning in Large Language Models", of which the
text was read.

    d(x)   success of a reference model in 8 tries; d ≥ 1 is discarded, d ≤ 0.625 waits
    epoch  every x with accuracy above 0.9 leaves and the easiest waiting prompt takes its place
    R      = (w_a j_a + Σ_i w_i j_i) / (w_a + Σ_i w_i) for open answers, else the verifier's word
    loss   = PPO's clip-higher on the token mean + 0.001 k3(π ‖ π_ref)

`rubric` are the criteria of open answers, columns of the task's rewards: the paper weighs essential
ones 1, important ones 0.7, optional ones 0.3, pitfalls that were avoided 0.9 and the final answer
4; one without a score leaves the mean. A soft reward never has a spread of 0: filter by outcomes.
The formula in print says argmin for the easiest; the text is followed. Where prompts have no
`meta["difficulty"]`, the policy that the run begins with is the reference model. Which responses
to imitate before: `rlvr_jax.tasks.synthesis.coverage.most_new_ngrams`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rlvr_jax.experience import experience, shape
from rlvr_jax.experience.batch import ROUNDING
from rlvr_jax.experience.curricula.batches import asks_for
from rlvr_jax.experience.curricula.history import rated_rates, visits_of
from rlvr_jax.experience.curricula.picks import of_round, rarest_order
from rlvr_jax.experience.parts import Curriculum
from rlvr_jax.objectives import (
    Criterion,
    by_rubric,
    group_normalized,
)
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Count, Epsilon, KLCoefficient, Unit
from rlvr_jax.types.parts import part

DISCARDED, ACTIVE, WAITING = 0, 1, 2


class Mastery(NamedTuple):
    """Of each of P prompts.

    Fields:
      active, waiting: bool [P], in the set, and in the queue.
      difficulty: float32 [P], pass rate of the reference model: larger is easier; NaN: unknown.
      total: float32 [P], sum of the pass rates of this epoch.
      visits: int32 [P], of this epoch.
    """

    active: np.ndarray
    waiting: np.ndarray
    difficulty: np.ndarray
    total: np.ndarray
    visits: np.ndarray


def stages_by_difficulty(difficulty: np.ndarray, pending: float, discard: float) -> np.ndarray:
    """What becomes of a prompt at first: 0 discarded, 1 in the first set, 2 in the queue; int [P].

    Args:
      difficulty: pass rate of the reference model, larger is easier.
      pending: up to which a prompt waits.
      discard: from which on a prompt is left out.
    """
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
    """The set and the queue once mastered prompts have left, in order of index, and as many waiting
    ones have entered, the easiest first; where fewer wait, the last mastered ones stay.

    Args:
      active, waiting: bool [P].
      accuracy: [P] of the epoch; NaN is not mastered.
      difficulty: [P], larger is easier; of equal ones the lower index first.
      mastered: accuracy above which a prompt leaves.
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


@part
def mastery_pool(mastered: Unit, pending: Unit, discard: Unit, samples: Count = 8) -> Curriculum:
    """Picks from a set of prompts that trades what is mastered for the easiest of what waits.

    Difficulty is `Prompt.meta["difficulty"]`, the pass rate of a reference model (larger is
    easier). Where a prompt has none, all are rated in step 0 by the policy that the run begins
    with, and step 0 trains on some of them at random. An epoch ends with the step in which every
    prompt of the set has been visited. If no prompt is easy enough to begin with, the easiest
    waiting ones are the first set, as many as a step asks.

    Args:
      mastered: accuracy in an epoch above which a prompt leaves.
      pending: pass rate up to which a prompt waits.
      discard: pass rate from which on a prompt is left out.
      samples: answers that a prompt is rated by.
    Reads: Prompt.meta. Metrics: active_prompts, waiting_prompts, mastered_prompts (that left).
    Raises:
      ValueError: a bound outside [0, 1], pending not below discard, no samples.
    """
    if not pending < discard:
        raise ValueError(f"mastery_pool: pending must be below discard {discard}, got {pending}")

    def begun(difficulty, prompts) -> Mastery:
        stage = stages_by_difficulty(difficulty, pending, discard)
        active, waiting = stage == ACTIVE, stage == WAITING
        if not active.any():
            # The easiest of those that are not too easy; all where there are none of these either.
            easiest = np.argsort(-np.where(waiting, difficulty, -np.inf), kind="stable")
            active[easiest[: min(prompts, waiting.sum())]] = True
            waiting = waiting & ~active
            active = active if active.any() else np.ones_like(active)
        size = len(difficulty)
        nothing = np.zeros(size, np.float32), np.zeros(size, np.int32)
        return Mastery(active, waiting, difficulty.astype(np.float32), *nothing)

    def init(setting):
        known = [prompt.meta.get("difficulty", np.nan) for prompt in setting.task.train]
        difficulty = np.array(known, np.float32)
        if np.isnan(difficulty).any():
            size = len(difficulty)
            every, none = np.ones(size, bool), np.zeros(size, bool)
            unknown = np.full(size, np.nan, np.float32)
            zeros = np.zeros(size, np.float32), np.zeros(size, np.int32)
            return Mastery(every, none, unknown, *zeros)
        return begun(difficulty, setting.prompts)

    def propose(asks, state, turn):
        del asks
        members = np.flatnonzero(state.active)
        order = members[rarest_order(turn.random(), state.visits[members])]
        wanted = turn.setting.prompts
        short = len(order) < wanted * (turn.round + 1)
        asked = asks_for(turn, np.resize(order, wanted) if short else of_round(order, turn))
        if turn.step or turn.round or not np.isnan(state.difficulty).any():
            return asked
        ratings = asks_for(turn, range(len(state.active)))
        return [*(replace(ask, samples=samples, rating=True) for ask in ratings), *asked]

    def observe(state, turn, seen, learned):
        del learned
        if turn.step == 0 and np.isnan(state.difficulty).any():
            # What nobody could grade waits behind all others.
            difficulty = np.zeros(len(state.active), np.float32)
            for number, rate in rated_rates(seen, len(difficulty)).items():
                difficulty[number] = rate
            return _told(begun(difficulty, turn.setting.prompts), 0)
        total, visits = state.total.copy(), state.visits.copy()
        # What nobody can grade is visited all the same, or the epoch would never end.
        for visit in visits_of(seen, len(total), undecided=True):
            total[visit.number] += np.nan_to_num(visit.rate)
            visits[visit.number] += 1
        state = state._replace(total=total, visits=visits)
        if not (visits[state.active] > 0).all():
            return _told(state, 0)
        accuracy = total / np.maximum(visits, 1)
        after, waiting = exchanged(
            state.active, state.waiting, accuracy, state.difficulty, mastered
        )
        left = float(np.sum(state.active & ~after))
        fresh = np.zeros_like(total), np.zeros_like(visits)
        return _told(Mastery(after, waiting, state.difficulty, *fresh), left)

    return Curriculum(propose, init, observe)


def _told(state: Mastery, left: float) -> tuple[Mastery, dict[str, float]]:
    return state, {
        "active_prompts": float(state.active.sum()),
        "waiting_prompts": float(state.waiting.sum()),
        "mastered_prompts": float(left),
    }


def dr_sci(
    mastered: float = 0.9,
    pending: float = 0.625,
    discard: float = 1.0,
    rating_samples: int = 8,
    rubric: Sequence[Criterion] = (),
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.28,
    kl_coefficient: KLCoefficient = 0.001,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """GRPO on a set of prompts that trades what is mastered for what comes next.

    Args:
      mastered: accuracy in an epoch above which a prompt leaves.
      pending: pass rate of the reference model up to which a prompt waits.
      discard: pass rate from which on a prompt is left out.
      rating_samples: answers that the pass rate is estimated from, where the task does not say it.
      rubric: criteria of open answers; none: the outcome is the reward.
    """
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low,
            clip_high=clip_high,
            advantage=group_normalized(epsilon),
            kl_coefficient=kl_coefficient,
        ),
        experience=experience(
            mastery_pool(mastered, pending, discard, rating_samples),
            stages=[shape(by_rubric(rubric))] if rubric else [],
        ),
    )


METHOD = Method(
    dr_sci,
    "Improving Data and Reward Design for Scientific Reasoning in Large Language Models",
    "",
    changes="curriculum, reward",
    evidence="reconstruction",
    left_out="fine-tuning on responses of most new 4-grams before",
    reports=(
        "Qwen3-4B base: 63.2 on GPQA-diamond, 32.4 on its open form; 13.1k prompts an epoch are "
        "about as good as all 100k"
    ),
    traps=(
        "8 of 8 in one visit counts as mastered, which is noisy; rewards of a rubric are hardly "
        "ever equal, so filter groups by outcomes; a pitfall's score is 1 where it was avoided, "
        "else its sign flips"
    ),
)
