"""SAPO: a sigmoid gate replaces the clip.

Gao et al. 2025, "Soft Adaptive Policy Optimization", https://arxiv.org/abs/2511.20347

    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    f(ρ) = (4/τ) σ(τ (ρ - 1)), τ = τ_pos if A > 0, τ_neg otherwise
    loss = -mean_i (1/n_i) Σ_t A f(ρ)

f has slope 1 at ρ = 1, so on-policy this is the plain policy gradient. The slope falls on both
sides, faster for a larger τ. With τ_neg > τ_pos, negative advantages are limited first. The
temperatures are the paper's as quoted by verl and TRL. All clamp log ρ to ±20.

Reports: Qwen3-30B-A3B base and Qwen3-VL: steadier and better than GSPO and GRPO in pass@1.
Traps: Nothing is clipped: at the default temperatures, the slope at a ratio of 3 is 0.42. The gate
is symmetric in the ratio, not in its logarithm. The loss has an offset without meaning.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.objectives import Surrogate, clamped_token_ratio, group_normalized, objective, part
from rlvr_jax.objectives.surrogates.aggregations import rollout_mean_token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import never_holds_back, with_ratio
from rlvr_jax.types import LOSS_ON_BRACKETS, Method, Recipe
from rlvr_jax.types.hyperparameters import Epsilon, Positive


@part
def sigmoid_gated(positive: Positive, negative: Positive) -> Surrogate:
    """-A f(ρ); log ρ is clamped to ±20."""

    def loss(signals, context):
        up = sigmoid_gate(signals.ratio, positive)
        down = sigmoid_gate(signals.ratio, negative)
        return -signals.advantage * jnp.where(signals.advantage > 0, up, down)

    return Surrogate(with_ratio(clamped_token_ratio), loss, never_holds_back)


def sigmoid_gate(ratio: Float[Array, "..."], temperature: float) -> Float[Array, "..."]:
    """f(ρ) = (4/τ) σ(τ (ρ - 1)); f(1) = 2/τ."""
    return 4 / temperature * jax.nn.sigmoid(temperature * (ratio - 1))


def sapo(
    positive_temperature: Positive = 1.0,
    negative_temperature: Positive = 1.05,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """Multiplies group-normalized advantages by a gated ratio of the token.

    Args:
      positive_temperature: sharpness of the gate where A > 0 (τ_pos).
      negative_temperature: sharpness of the gate elsewhere (τ_neg).
    """
    advantage = group_normalized(epsilon)
    surrogate = sigmoid_gated(positive_temperature, negative_temperature)
    return Recipe(
        objective(advantage=advantage, surrogate=surrogate, aggregation=rollout_mean_token_mean())
    )


METHOD = Method(sapo, changes="surrogate", shown=LOSS_ON_BRACKETS)
