"""LUFFY: a verified worked solution in every group, learned from by its shaped probability.

"Learning to Reason under Off-Policy Guidance", https://github.com/ElliottYan/LUFFY

    A_i  = R_i - mean over all N rows of the group, the teacher's among them
    own token:      -A_i π / π_old
    teacher's:      -A_i f(π),  f(π) = π / (π + γ)
    loss = Σ over all tokens / L - c_H mean H

The teacher is taken to have been sure of what it wrote, so the ratio is π itself; its gradient
A π ∇log π passes over what the policy finds unlikely, that of f is largest where π = γ. Where all
own answers are wrong, learning starts from the solution alone; where all are right, nothing is
learned. A wrong solution is pushed down. The published run has no clip, no standard deviation and
no division by the rows; we sum over the update, they over a micro-batch. Other forms of their code
are compositions: a clip on own tokens is `by_origin(ppo_clip(0.2, 0.2), shaped_probability(γ))`,
statistics of own rows alone are `relative_to_own_rows()`, "RL + SFT" is PPO with
`drop_off_policy()` and `imitate(1.0, off_policy_tokens, {"off_policy"})`.
"""

import jax.numpy as jnp

from rlvr_jax.experience import add_traces, experience
from rlvr_jax.objectives import (
    by_origin,
    fixed_length_sum,
    group_centered,
    importance_weighted,
    objective,
    shaped_probability,
    statistic_term,
)
from rlvr_jax.objectives.advantages.group_relative import rollout_advantage
from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.statistics.groups import group_count, group_mean, group_std
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import Positive
from rlvr_jax.types.parts import part


@part
def relative_to_own_rows(epsilon: Positive = 1e-6) -> Transform:
    """A_i = (R_i - mean) / (std + ε) for all rows, mean and std of the policy's own in the group.

    The scale is 1 + ε where own rows do not differ; an own row that is alone in its group is its
    own measure: mean 0, std 1.

    Args:
      epsilon: ε, added to the standard deviation (n - 1), outside its root.
    """

    def advantage(rollouts):
        reward, group, own = rollouts.reward, rollouts.group, ~rollouts.off_policy
        alone = group_count(group, own) <= 1
        spread = group_std(reward, group, where=own)
        scale = jnp.where(alone | (spread == 0), 1, spread) + epsilon
        return (reward - jnp.where(alone, 0, group_mean(reward, group, where=own))) / scale

    return rollout_advantage(advantage, reads={"off_policy"})


def luffy_mixed(
    gamma: float = 0.1,
    entropy_coefficient: float = 0.001,
    max_length: int = 8192,
    traces: int = 1,
) -> Recipe:
    """Unclipped policy gradient on own tokens, shaped probability on those of a worked solution.

    Args:
      gamma: probability at which a teacher's token is learned from most (γ).
      entropy_coefficient: weight of the mean entropy (c_H).
      max_length: budget of response tokens (L).
      traces: rows of each group that are its solution.
    """
    bonus = [statistic_term(-entropy_coefficient, "entropy")] if entropy_coefficient else []
    return Recipe(
        objective=objective(
            advantage=group_centered(),
            surrogate=by_origin(own=importance_weighted(), foreign=shaped_probability(gamma)),
            regularizers=bonus,
            aggregation=fixed_length_sum(max_length),
        ),
        experience=experience(stages=[add_traces(traces)]),
    )


METHOD = Method(
    luffy_mixed,
    "Learning to Reason under Off-Policy Guidance",
    "https://github.com/ElliottYan/LUFFY",
    changes="advantage, surrogate, aggregation, guidance",
    ratio="other",
    reports="Qwen2.5-Math-7B: above RL on policy on the mean of six maths benchmarks",
    traps=(
        "a clip would make it another method, though the released settings name one; the loss is a "
        "sum over rows, so a larger batch is a larger step; give max_length the run's budget"
    ),
)
