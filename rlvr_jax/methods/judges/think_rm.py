"""Think-RM: a judge compares responses by strength, and the differences are advantages.

"Think-RM: Enabling Long-Horizon Reasoning in Generative Reward Models",
https://github.com/IlgeeHong/Think-RM

    d_ij = -m, m the judge's strength in -3 … 3 (positive: the second is better), d_ji = -d_ij
    A_i  = (1/N) Σ_j d_ij / √(Σ d² / (2 N (N - 1)) + 1e-6)
    loss = Σ [PPO clip + β k3] / Σ n_i

If d_ij = r_i - r_j, this is GRPO's advantage with ε inside the root. Contradictory strengths reduce
it, as cycles cancel above the root and not below. An unreadable comparison is a draw. A response
without any readable comparison leaves the loss. The judge (`compare`) returns two scores with
difference d. With `--judge-prompt strength` it writes m, and sees each pair in one order. The
authors use a model that RL trained to think before its verdict.

Left out: the authors' judge (use `--judge`) and its training.
Reports: The 8B judge: 8 % on RM-Bench over Bradley-Terry and plain generative judges. Policies are
better than with scores (no numbers).
Traps: By default, pairs are compared by the verifier's outcomes, which is nearly GRPO. A prompt
requires N (N - 1) / 2 calls, and twice as many with both orders (`--judge-prompt pairs`). The
binary judge divides by its text's length.
"""

import numpy as np
from jaxtyping import Float

from rlvr_jax.experience import compare_by, experience, tournament
from rlvr_jax.experience.rewards.tournaments import Rounds, Scores, scored_matches
from rlvr_jax.experience.stages.rewards.tournament import Compare
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.types import Function, Method, Recipe, Shown, part
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Epsilon, KLCoefficient


def difference_table(players: int, rounds: Rounds) -> Float[np.ndarray, "N N"]:
    """d_ij = s_i - s_j of compared pairs, 0 of others."""
    table = np.zeros((players, players))
    for first, second, one, other in scored_matches(rounds):
        table[first, second], table[second, first] = one - other, other - one
    return table


def difference_advantage(table: Float[np.ndarray, "N N"], epsilon: float = 1e-6) -> Scores:
    """A of the differences d; 0 of one player."""
    players = len(table)
    spread = np.sum(table**2) / max(2 * players * (players - 1), 1)
    return table.mean(axis=1) / np.sqrt(spread + epsilon)


def mean_difference(players: int, rounds: Rounds) -> Scores:
    """(1/N) Σ_j d_ij of each response."""
    return difference_table(players, rounds).mean(axis=1)


@part
def standardized_difference(epsilon: Epsilon) -> Function:
    """(players, rounds) -> `difference_advantage`."""
    return lambda players, rounds: difference_advantage(difference_table(players, rounds), epsilon)


def think_rm(
    compare: Compare = compare_by(),  # noqa: B008 (a function)
    kl_coefficient: KLCoefficient = 1e-4,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """Applies GRPO's clipped loss and KL to advantages of pairwise differences.

    Args:
      compare: (batch, pairs of rows, actor, turn) -> scores of both, metrics, and the judge's
        replies; such as `compare_with(judge)`.
    """
    return Recipe(
        objective=clipped_objective(
            clip_low, clip_high, epsilon=epsilon, kl_coefficient=kl_coefficient
        ),
        experience=experience(
            stages=[
                tournament(compare, mean_difference, advantage=standardized_difference(epsilon))
            ]
        ),
    )


METHOD = Method(
    think_rm,
    changes="advantage, reward",
    baseline="other",
    shown=Shown(
        "brackets",
        "experience/ranked_uniform_groups",
        without={"compare": "compare_by()"},
        hyperparameters={"compare": "rlvr_jax.tasks.brackets_judge:nearer"},
    ),
)
