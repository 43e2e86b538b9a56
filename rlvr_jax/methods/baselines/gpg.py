"""GPG: plain policy gradient on centred rewards, rescaled to the groups that carry a gradient.

"GPG: A Simple and Strong Reinforcement Learning Baseline for Model Reasoning",
https://github.com/AMAP-ML/GPG

    A_i  = (R_i - mean of the group) / F
    loss = α · mean_i (1/n_i) Σ_t -A_i logp_it,  α = 1 / (v + 1e-5)

v is the share of the rollouts in groups with rewards that differ: the mean is effectively over
those. F is 1; with the group's deviation in its place the method is GRPO's advantage. verl has
α = B / max(m, 1) with m the rollouts of non-zero reward (`nonzero_scale`), which is another factor.
There is no ratio, so the method has to stay on-policy.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.objectives.advantages.group_relative import relative_to
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.statistics.groups import group_all_equal, group_mean, has_tokens
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.objectives.surrogates.aggregations import rollout_mean_token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import reinforce
from rlvr_jax.types import Method, Recipe, replace
from rlvr_jax.types.hyperparameters import Epsilon, Positive
from rlvr_jax.types.parts import part


def informative_share(
    reward: Float[Array, "B"], group: Int[Array, "B"], where: Bool[Array, "B"]
) -> Float[Array, ""]:
    """Share of the rollouts that count whose group has rewards that differ."""
    return masked_mean(~group_all_equal(reward, group), where).astype(reward.dtype)


def nonzero_scale(reward: Float[Array, "B"]) -> Float[Array, ""]:
    """B / max(m, 1) with m the rollouts of non-zero reward: verl's reading of GPG's factor.

    An all-correct group counts as informative then, a wrong rollout of a mixed group does not.
    """
    nonzero = jnp.sum((reward != 0).astype(reward.dtype))
    return reward.shape[0] / jnp.maximum(nonzero, 1)


@part(writes={"advantage"}, once=True)
def amplify_informative(epsilon: Positive = 1e-5) -> Transform:
    """A' = A / (v + ε), v the share of the rollouts in groups with rewards that differ.

    v is the share among the rollouts with tokens: a mean over these becomes one over those that
    carry a gradient.

    Args:
      epsilon: ε, positive; a batch of equal rewards keeps its advantages of 0.
    Metrics: informative_share.
    """

    def apply(signals, context, state):
        rollouts = context.rollouts
        share = informative_share(rollouts.reward, rollouts.group, has_tokens(signals.mask))
        signals = replace(signals, advantage=signals.advantage / (share + epsilon))
        return signals, state, {"informative_share": share}

    return apply


def gpg(normalizer: float = 1.0, epsilon: Epsilon = 1e-5) -> Recipe:
    """Centred rewards times log-probs, as a mean over the informative rollouts.

    Args:
      normalizer: divisor of the advantage (F_norm).
    """
    return Recipe(
        objective=objective(
            advantage=relative_to(group_mean, scale=normalizer),
            transforms=[amplify_informative(epsilon)],
            surrogate=reinforce(),
            aggregation=rollout_mean_token_mean(),
        )
    )


METHOD = Method(
    gpg,
    "GPG: A Simple and Strong Reinforcement Learning Baseline for Model Reasoning",
    "https://github.com/AMAP-ML/GPG",
    changes="advantage, surrogate",
    left_out="drawing more prompts while the share of informative rollouts is below a threshold",
    reports=(
        "Qwen2.5-Math-7B, mean of five maths sets: 43.9 plain, 45.3 over the deviation, 47.8 "
        "rescaled, 48.3 with resampling"
    ),
    traps=(
        "no ratio, so one update per batch; verl rescales by the rows of non-zero reward, by which "
        "an all-right group counts as informative; where few groups are mixed these few make the "
        "whole step"
    ),
)
