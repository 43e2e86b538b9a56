"""C-GRPO with CaRR: among correct responses, those with a chain of evidence earn more.

"Chaining the Evidence: Robust Reinforcement Learning for Deep Search Agents with Citation-Aware
Rubric Rewards", https://github.com/THUDM/CaRR

    E_i  = fraction of the rubric that the evidence reaches from the answer / the group's largest
    R_i  = (1 - α) outcome_i + α outcome_i E_i
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ n_i

α is `fraction`. The largest fraction is that of all rows of the group, including incorrect ones.
The authors' flags use the fraction without this division (`relative=False`). The fraction is a
reward of the task (`column`). `rlvr_jax.verifiers.texts.carr_cgrpo` computes it from the supported
statements of the rubric. The task `cited_chains` has it: a program reads the entities and the cited
chunks there.

Left out: the authors' judges, which read entities and support in free text; the agent's tools;
truncated importance sampling between engines.
Reports: Qwen3-4B and 30B-A3B Thinking: above GRPO on outcomes on four deep-search benchmarks, more
so with longer contexts (no numbers).
Traps: In a group of correct responses, only the evidence decides, at full strength. In a group of
incorrect responses, it has no effect.
"""

from typing import Any

import jax.numpy as jnp

from rlvr_jax.experience import Shaping, experience, shape, shaping
from rlvr_jax.objectives import clipped_objective, group_max, part
from rlvr_jax.types import Method, Recipe, Shown, arguments_of, is_correct
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Epsilon, NonNegativeInt, Unit


@part
def with_evidence(column: NonNegativeInt, fraction: Unit = 0.3, relative: bool = True) -> Shaping:
    """(1 - α) R + α R E.

    Args:
      column: index of the task's reward with the reached fraction of the rubric.
      fraction: weight of the evidence in the reward (α).
      relative: whether evidence is divided by the group's largest.
    Metrics: reward/evidence (mean of the column), reward/evidence_of_right (its mean over correct
      rows), reward/withheld (mean of the outcome minus the reward).
    """

    def reward(rollouts):
        outcome, own = rollouts.outcome, rollouts.records["component_rewards"][:, column]
        known = ~jnp.isnan(own)
        best = group_max(jnp.where(known, own, 0), rollouts.group, known)
        counted = own / jnp.where(best > 0, best, 1) if relative else own
        of_correct = jnp.where(is_correct(outcome), own, jnp.nan)
        # An incorrect response earns 0 even where its evidence is unknown (NaN).
        of_evidence = jnp.where(outcome == 0, 0, outcome * counted)
        earned = (1 - fraction) * outcome + fraction * of_evidence
        parts = {"reward/evidence": own, "reward/evidence_of_right": of_correct}
        return earned, {**parts, "reward/withheld": outcome - earned}

    return shaping(reward, columns=column + 1)


@arguments_of(with_evidence, column=0)
def carr_cgrpo(
    clip_low: ClipLow = 0.2, clip_high: ClipHigh = 0.28, epsilon: Epsilon = 1e-6, **evidence: Any
) -> Recipe:
    """Applies clip-higher with the token mean to correctness and evidence."""
    return Recipe(
        objective=clipped_objective(clip_low, clip_high, epsilon=epsilon),
        experience=experience(stages=[shape(with_evidence(**evidence))]),
    )


METHOD = Method(
    carr_cgrpo,
    changes="reward",
    shown=Shown(
        "cited_chains",
        "experience/reward/withheld",
        without={"fraction": 0},
        hyperparameters={"column": 3},
    ),
)
