"""C-GRPO with CaRR: of right answers those with a chain of evidence earn more.

"Chaining the Evidence: Robust Reinforcement Learning for Deep Search Agents with Citation-Aware
Rubric Rewards", https://github.com/THUDM/CaRR

    E_i  = share of the rubric that the evidence reaches from the answer, over the group's largest
    R_i  = (1 - α) outcome_i + α outcome_i E_i
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ n_i

The largest share is that of all rows of the group, wrong ones included. The released flags take the
share as it is (`relative=False`). Where all are wrong nothing is learned; where all are right α's
part alone decides, at full strength. The share is a reward of the task (`column`); `reached_share`
is the search over supported rubrics, whose support models judge.
"""

from __future__ import annotations

import jax.numpy as jnp

from rlvr_jax.experience import experience, shape
from rlvr_jax.objectives import group_normalized
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.objectives.rewards.parts import Shaping, judged_mean
from rlvr_jax.objectives.rewards.rubrics import Rows
from rlvr_jax.objectives.statistics.groups import group_max
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Epsilon, Unit
from rlvr_jax.types.parts import part


@part
def with_evidence(column: int, share: Unit = 0.3, relative: bool = True) -> Shaping:
    """(1 - α) R + α R E: of right responses those with more evidence earn more; wrong ones nothing.

    Args:
      column: of the task's rewards, the share of a rubric that the evidence reaches.
      share: α.
      relative: E is that share over the largest of the group, wrong rows included; else as it is.
    Reads: outcome, group, component_rewards. Metrics: reward/evidence, reward/evidence_of_right.
    """

    def apply(rollouts, state, moment):
        del moment
        outcome, own = rollouts.outcome, rollouts.component_rewards[:, column]
        known = ~jnp.isnan(own)
        best = group_max(jnp.where(known, own, 0), rollouts.group, known)
        counted = relative_to_best(own, best) if relative else own
        of_right = jnp.where(outcome > 0.5, own, jnp.nan)
        metrics = {
            "reward/evidence": judged_mean(own, rollouts),
            "reward/evidence_of_right": judged_mean(of_right, rollouts),
        }
        # A wrong response earns nothing, whatever its evidence: nobody has to know it.
        of_evidence = jnp.where(outcome == 0, 0, outcome * counted)
        return (1 - share) * outcome + share * of_evidence, state, metrics

    reads = frozenset({"component_rewards"})
    return Shaping(apply, reads=reads, columns=column + 1)


def relative_to_best(share: Rows, largest: Rows) -> Rows:
    """share / largest of the group; the share where that is 0."""
    return share / jnp.where(largest > 0, largest, 1)


def carr_cgrpo(
    share: float = 0.3,
    relative: bool = True,
    column: int = 0,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.28,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """Clip-higher on the token mean, on right answers and their evidence.

    Args:
      share: of the evidence in the reward (α).
      relative: evidence counts relative to the group's largest.
      column: of the task's rewards, the share of the rubric that is reached.
    """
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low, clip_high=clip_high, advantage=group_normalized(epsilon)
        ),
        experience=experience(stages=[shape(with_evidence(column, share, relative))]),
    )


METHOD = Method(
    carr_cgrpo,
    "Chaining the Evidence: Robust Reinforcement Learning for Deep Search Agents with"
    " Citation-Aware Rubric Rewards",
    "https://github.com/THUDM/CaRR",
    changes="reward",
    left_out=(
        "the authors' judges (`--judge` brings one); the agent's tools; "
        "truncated importance sampling between engines"
    ),
    reports=(
        "Qwen3-4B and 30B-A3B Thinking: above GRPO on outcomes on four deep-search benchmarks, "
        "more so with longer contexts"
    ),
    traps=(
        "the released flags take the share as it is (`relative=False`); where all are right the "
        "evidence decides at full strength, where all are wrong it counts for nothing"
    ),
)
