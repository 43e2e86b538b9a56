"""PROF: of more answers than are trained on, keep those whose steps agree with their outcome.

"Beyond Correctness: Harmonizing Process and Outcome Rewards through RL Training",
https://github.com/Chenluye99/PROF

    1. n = 8 responses to each prompt; r = ±(mean score of its steps - λ I), + if it is right; I = 1
       for a response of one step, or of H_λ and more
    2. m = 4 are kept, right and wrong ones in shares as equal as possible:
       q⁺ = min(n⁺, max(m/2, m - n⁻)) right ones of highest r, q⁻ = m - q⁺ wrong ones of highest r
    3. GRPO over the kept: A = (R - mean) / (std + 1e-6), std with n - 1
       loss = Σ max(-A ρ, -A clip(ρ, 1 ± ε)) / Σ n_i

The process scores choose and do not enter the objective. "Both" is the published form; with
`rank_wrong=False` ("Filter-Correct") wrong ones are taken as they come, which is safer where a
scorer does not know them. With the sign before the bracket a wrong answer of one step gains λ:
whether that is meant is not said. λ and H_λ are not given: with ours the penalty outranks any
difference of scores in [0, 1]. The paper's scores are those of a process reward model; here the
task scores steps, such as each equation of a brackets trace.
"""

from __future__ import annotations

import numpy as np

from rlvr_jax.experience import experience, score_steps
from rlvr_jax.experience.parts import Stage
from rlvr_jax.experience.stages.choices.rows import select_rows
from rlvr_jax.objectives import group_normalized
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Count, Epsilon, NonNegative
from rlvr_jax.types.parts import part
from rlvr_jax.types.rollouts import Rollouts


def step_means(rollouts: Rollouts) -> tuple[np.ndarray, np.ndarray]:
    """The mean score of the steps of each row, and their number, both [B]; 0 of none.

    The score of a step is the sum of `process_reward` over its tokens.
    """
    member = np.asarray(rollouts.mask) & (np.asarray(rollouts.step) >= 0)
    ids = np.sort(np.where(member, rollouts.step, -1), axis=1)
    begins = np.diff(ids, axis=1, prepend=-1) != 0
    number = np.sum(begins & (ids >= 0), axis=1)
    total = np.sum(np.where(member, rollouts.process_reward, 0), axis=1)
    return total / np.maximum(number, 1), number


def consistency(
    mean: np.ndarray, number: np.ndarray, right: np.ndarray, penalty: float, most_steps: int
) -> np.ndarray:
    """How well the steps of an answer agree with its outcome, ±(mean - λ I), + if it is right.

    I is 1 for an answer of at most one step and for one of `most_steps` or more.

    Args:
      mean, number: of its steps, [B].
      right: bool [B].
      penalty: λ.
    """
    odd = (number <= 1) | (number >= most_steps)
    return np.where(right, 1, -1) * (mean - penalty * odd)


def num_right_kept(rights: int, wrongs: int, number: int) -> int:
    """How many right answers are kept so that both kinds are as equal as they can be."""
    return min(rights, max(number // 2, number - wrongs))


def consistent_rows(right: np.ndarray, agreement: np.ndarray, number: int) -> np.ndarray:
    """Which of n answers are kept, bool [n]: of each kind those that agree most, in equal shares.

    Args:
      right: bool [n].
      agreement: [n]; of equal ones the earlier is kept.
      number: to keep, at most n.
    """
    rights, wrongs = np.flatnonzero(right), np.flatnonzero(~right)
    num_right = num_right_kept(len(rights), len(wrongs), number)
    kept = np.zeros(len(right), bool)
    for rows, count in ((rights, num_right), (wrongs, number - num_right)):
        kept[rows[np.argsort(-agreement[rows], kind="stable")[:count]]] = True
    return kept


@part
def select_consistent(
    drawn: int = 2, penalty: NonNegative = 1.0, most_steps: Count = 30, rank_wrong: bool = True
) -> Stage:
    """Keeps right answers of right steps and wrong answers of wrong steps, of more that were drawn.

    As many right as wrong ones, as far as there are. Process scores select, they are not learned
    from. Groups of one kind are kept, too; their advantages are 0. Those with too few verdicts are
    dropped: their mask is cleared.

    Args:
      drawn: answers drawn for each that is kept.
      penalty: λ, for answers of one step or of many.
      most_steps: many.
      rank_wrong: wrong ones are chosen by their steps, too; else the first ones, which of
        exchangeable answers are a uniform choice.
    Reads: outcome, step, process_reward. Metrics: as `select_rows`.
    """

    def choose(batch, rows, number, turn):
        del turn
        rows = rows[batch.decided[rows]]
        if len(rows) < number:
            return rows[:0]
        own = batch.take(rows).rollouts
        right = own.outcome > 0.5
        agreement = consistency(*step_means(own), right, penalty, most_steps)
        if not rank_wrong:
            agreement = np.where(right, agreement, 0)
        return rows[consistent_rows(right, agreement, number)]

    return select_rows(choose, drawn)


def prof(
    drawn: int = 2,
    penalty: float = 1.0,
    most_steps: int = 30,
    rank_wrong: bool = True,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """GRPO on the token mean, on half of the responses that were drawn.

    Args:
      drawn: responses drawn for each that is kept (n / m); m should be even.
      penalty: for responses of one step or of many (λ).
      most_steps: many (H_λ).
      rank_wrong: wrong responses are chosen by their steps, too.
    """
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low, clip_high=clip_high, advantage=group_normalized(epsilon)
        ),
        experience=experience(
            stages=[score_steps(), select_consistent(drawn, penalty, most_steps, rank_wrong)]
        ),
    )


METHOD = Method(
    prof,
    "Beyond Correctness: Harmonizing Process and Outcome Rewards through RL Training",
    "https://github.com/Chenluye99/PROF",
    changes="selection, sampling",
    evidence="reconstruction",
    reports=(
        "five maths sets, over GRPO: 1.5B 37.2 to 39.6, 7B 49.9 to 51.7, where blending the "
        "scores into rewards gives 35.3 and 47.3"
    ),
    traps=(
        "twice the answers are drawn; groups of one outcome teach nothing; an odd number of kept "
        "rows has two best splits; a wrong answer of one step is rather kept"
    ),
)
