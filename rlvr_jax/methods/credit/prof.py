"""PROF: samples more responses than it trains and selects those whose steps agree with the outcome.

"Beyond Correctness: Harmonizing Process and Outcome Rewards through RL Training",
https://github.com/Chenluye99/PROF

    1. n = 8 responses to each prompt; r = ±(mean score of its steps - λ I), + if correct; I = 1 for
       a response of one step, or of H_λ and more
    2. m = 4 are selected, correct and incorrect ones in fractions as equal as possible:
       q⁺ = min(n⁺, max(m/2, m - n⁻)) correct ones of highest r, q⁻ = m - q⁺ incorrect ones
    3. GRPO over the selected ones: A = (R - mean) / (std + 1e-6), std with n - 1
       loss = Σ max(-A ρ, -A clip(ρ, 1 ± ε)) / Σ n_i

Process scores select rows and do not enter the objective. This is the published form "Both". With
`rank_incorrect=False` ("Filter-Correct"), the first incorrect rows are selected, which is safer if
a scorer does not know them. By the sign before the bracket, an incorrect response of one step gains
λ. The paper does not state whether this is intended. A reconstruction: λ (`penalty`) and H_λ
(`most_steps`) are not published. Ours let the penalty exceed any difference of scores in [0, 1].
The paper's scores are those of a process reward model. Here they are those of the task, such as
each equation of a brackets trace.

Reports: mean of five maths sets over GRPO, in %: 1.5B 37.2 to 39.6, 7B 49.9 to 51.7. Blending the
scores into rewards results in 35.3 and 47.3.
Traps: Twice as many responses are sampled. Groups of one outcome do not train. For an odd number of
selected rows, two splits are equally good. An incorrect response of one step is preferred.
"""

from typing import Any

import numpy as np

from rlvr_jax.experience import Stage, experience, score_steps, select_rows
from rlvr_jax.objectives import clipped_objective, part
from rlvr_jax.types import Method, Recipe, Rollouts, Shown, arguments_of, is_correct
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Count, Epsilon, NonNegative


@part
def select_consistent(
    oversampling: Count = 2,
    penalty: NonNegative = 1.0,
    most_steps: Count = 30,
    rank_incorrect: bool = True,
) -> Stage:
    """Selects the correct and the incorrect responses whose steps agree most with the outcome.

    Process scores select rows, they are not trained on. Groups of one kind stay, with advantages of
    0. The mask of groups with too few graded responses is cleared.

    Args:
      oversampling: responses sampled for each selected one (n / m); m should be even.
      penalty: for responses of one step or of `most_steps` and more (λ).
      most_steps: number of steps from which on a response is penalized (H_λ).
      rank_incorrect: incorrect responses are ranked by their steps; False: the first ones are
        taken, a uniform choice.
    Reads: outcome, step, process_reward. Metrics: those of `select_rows`, reordered_rows (selected
      rows that are not selected if all steps are equal).
    """

    def apply(batch, actor, state, turn):
        reordered = 0

        def choose(batch, rows, number, turn):
            nonlocal reordered
            rows = rows[batch.decided[rows]]
            if len(rows) < number:
                return rows[:0]
            own = batch.take(rows).rollouts
            correct = is_correct(own.outcome)
            agreement = consistency(*step_means(own), correct, penalty, most_steps)
            if not rank_incorrect:
                agreement = np.where(correct, agreement, 0)
            selected = consistent_rows(correct, agreement, number)
            reordered += np.sum(selected & ~consistent_rows(correct, 0 * agreement, number))
            return rows[selected]

        selection = select_rows(choose, oversampling)
        batch, state, metrics = selection.apply(batch, actor, state, turn)
        return batch, state, {**metrics, "reordered_rows": float(reordered)}

    return Stage(apply, size=lambda samples: oversampling * samples)


def step_means(rollouts: Rollouts) -> tuple[np.ndarray, np.ndarray]:
    """Mean score and number of the steps of each row, [B]; 0 for rows without steps.

    The score of a step is the sum of `process_reward` over its tokens.
    """
    member = np.asarray(rollouts.mask) & (np.asarray(rollouts.records["step"]) >= 0)
    ids = np.sort(np.where(member, rollouts.records["step"], -1), axis=1)
    begins = np.diff(ids, axis=1, prepend=-1) != 0
    number = np.sum(begins & (ids >= 0), axis=1)
    total = np.sum(np.where(member, rollouts.records["process_reward"], 0), axis=1)
    return total / np.maximum(number, 1), number


def consistency(
    mean: np.ndarray, number: np.ndarray, correct: np.ndarray, penalty: float, most_steps: int
) -> np.ndarray:
    """r = ±(mean - λ I), + for correct responses.

    I is 1 for responses of at most one step and of `most_steps` or more.

    Args:
      mean, number: mean score of the steps of each response and number of its steps, [B], from
        `step_means`.
      correct: whether the response is correct, bool [B].
      penalty: subtracted where I is 1 (λ).
      most_steps: number of steps from which on a response is penalized.
    """
    odd = (number <= 1) | (number >= most_steps)
    return np.where(correct, 1, -1) * (mean - penalty * odd)


def consistent_rows(correct: np.ndarray, agreement: np.ndarray, number: int) -> np.ndarray:
    """The responses that are selected, bool [n]: those of highest agreement of each kind.

    Args:
      agreement: [n]; of equal ones the earlier is selected.
      number: to select, at most n.
    """
    correct_rows, incorrect_rows = np.flatnonzero(correct), np.flatnonzero(~correct)
    num_correct = num_correct_selected(len(correct_rows), len(incorrect_rows), number)
    selected = np.zeros(len(correct), bool)
    for rows, count in ((correct_rows, num_correct), (incorrect_rows, number - num_correct)):
        selected[rows[np.argsort(-agreement[rows], kind="stable")[:count]]] = True
    return selected


def num_correct_selected(correct_rows: int, incorrect_rows: int, number: int) -> int:
    """Number of correct responses to select, so that both kinds are as equal as possible."""
    return min(correct_rows, max(number // 2, number - incorrect_rows))


@arguments_of(select_consistent)
def prof(
    clip_low: ClipLow = 0.2, clip_high: ClipHigh = 0.2, epsilon: Epsilon = 1e-6, **selection: Any
) -> Recipe:
    """Applies GRPO with the token mean to half of the sampled responses."""
    return Recipe(
        objective=clipped_objective(clip_low, clip_high, epsilon=epsilon),
        experience=experience(stages=[score_steps(), select_consistent(**selection)]),
    )


METHOD = Method(
    prof,
    changes="selection, sampling",
    evidence="reconstruction",
    shown=Shown("brackets", "experience/reordered_rows"),
)
