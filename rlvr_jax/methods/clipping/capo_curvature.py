"""CAPO: drops the tokens on which an optimizer step is predicted to be too large.

Melo et al. 2025, "Stabilizing Policy Gradients for Sample-Efficient Reinforcement Learning in LLM
Reasoning", https://arxiv.org/abs/2510.00819

    A_i  = (R_i - mean) / (std + 1e-4), std with n - 1
    m_H  = η ‖g‖² + η²/2 · A [(v·u)² - uᵀ(diag π - ππᵀ)u],  m_F = η²/2 · (v·u)²
    S    = tokens with |m_H| < δ_H and m_F < δ_F
    loss = (1/B) Σ_i Σ_{t ∈ S} max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) / max(1, tokens of i in S)

m_H and m_F predict the effect of a gradient step on one token. m_H is the change of the objective,
m_F that of the policy (nats, as a KL). In the formulas, v = onehot(token) - π, h is the last hidden
state, g = A v hᵀ, u = g h. The policy π is renormalized over the k most probable tokens (`top_k`).
The limits δ_H and δ_F are `change_limit` and `shift_limit`, with the authors' values for GRPO's
advantages. Dr. CAPO has δ_F = 1e-3, δ_H = 5e-4 and divides by B L (`fixed_length_mean`). The
learning rate is the run's; the authors use a high one, 1.5e-5.

Left out: sampling with the same top-k; Adam's moments and the scheduled learning rate in the
prediction; masks of whole rollouts and batches.
Reports: Qwen2.5-Math-7B on MATH: stable at learning rates where GRPO collapses, with less than 8 %
of the tokens dropped and up to 30 times fewer samples.
Traps: The limits fit the authors' learning rate and advantage; at a smaller rate nothing is
dropped. At a larger rate, multiply δ_H by the ratio of the rates and δ_F by its square. With the
same limits most uncertain tokens are dropped, and the policy unlearns. `learning_rate` does not
follow a warm-up. Tokens with A = 0 always count in the denominator.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from rlvr_jax.objectives import Aggregation, Transform, clipped_objective, part, row_mean_token_mean
from rlvr_jax.objectives.statistics.masked import masked_max, masked_mean
from rlvr_jax.types import Method, Recipe, Shown, replace
from rlvr_jax.types.hyperparameters import (
    Bound,
    ClipHigh,
    ClipLow,
    Count,
    Epsilon,
    LearningRate,
)


@part(reads={"topk_logp", "topk_ids", "hidden", "batch_statistics"}, writes={"mask"})
def drop_unstable_steps(
    change_limit: Bound,
    shift_limit: Bound,
    learning_rate: LearningRate,
    top_k: Count,
    symmetric: bool = True,
) -> Transform:
    """Takes tokens out of the loss and its denominators on which a step would go too far.

    Args:
      change_limit, shift_limit: δ_H and δ_F; the predictions must be strictly below them.
      learning_rate: learning rate of the optimizer in the prediction (η).
      top_k: number of most probable tokens in π.
      symmetric: False requires m_H in [0, δ_H): the objective may not fall.
    Metrics: rejected_fraction (of the tokens), predicted_shift_max (largest predicted shift, nats).
    """

    def apply(signals, context, state):
        stats = context.stats
        change, shift = predicted_step(
            signals.advantage,
            stats.records["topk_logp"],
            stats.records["topk_ids"],
            context.rollouts.tokens,
            stats.records["hidden"],
            learning_rate,
        )
        above = change > -change_limit if symmetric else change >= 0
        stable = above & (change < change_limit) & (shift < shift_limit)
        mask = signals.mask & stable
        metrics = {
            "rejected_fraction": masked_mean(~mask, signals.mask),
            "predicted_shift_max": masked_max(shift, signals.mask),
        }
        return replace(signals, mask=mask), state, metrics

    return Transform(apply, options=(("top_k", top_k),))


def predicted_step(
    advantage: Float[Array, "B T"],
    topk_logp: Float[Array, "B T k"],
    topk_ids: Int[Array, "B T k"],
    tokens: Int[Array, "B T"],
    hidden: Float[Array, "B T D"],
    learning_rate: float,
) -> tuple[Float[Array, "B T"], Float[Array, "B T"]]:
    """m_H and m_F of each token; a sampled token outside the k most probable leaves v = -π.

    Args:
      advantage: of each token.
      topk_logp: log-probs of the k most probable tokens.
      topk_ids: their ids.
      tokens: sampled tokens.
      hidden: input of the last layer.
      learning_rate: of the step.
    """
    p = jax.lax.stop_gradient(jax.nn.softmax(topk_logp, axis=-1))
    v = (topk_ids == tokens[..., None]).astype(p.dtype) - p
    v_squared = jnp.sum(v**2, axis=-1)
    h_squared = jnp.sum(jax.lax.stop_gradient(hidden) ** 2, axis=-1)
    variance = jnp.sum(p * v**2, axis=-1) - jnp.sum(p * v, axis=-1) ** 2
    slope = advantage * h_squared * v_squared  # v·u, as u = A ‖h‖² v
    squared_gradient = advantage * slope
    curvature = advantage * (slope**2 - (advantage * h_squared) ** 2 * variance)
    change = learning_rate * squared_gradient + 0.5 * learning_rate**2 * curvature
    shift = 0.5 * learning_rate**2 * slope**2
    return change, shift


def capo_curvature(
    change_limit: Bound = 0.01,
    shift_limit: Bound = 1e-4,
    learning_rate: LearningRate = 1.5e-5,
    top_k: Count = 50,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-4,
    symmetric: bool = True,
    aggregation: Aggregation = row_mean_token_mean(),  # noqa: B008 (frozen)
) -> Recipe:
    """GRPO's loss on the tokens whose predicted step stays small.

    Args:
      change_limit: bound of the predicted change of the objective, of either sign (δ_H).
      shift_limit: bound of the predicted shift of the policy (δ_F).
      top_k: number of most probable tokens in π.
      symmetric: False drops every token whose step would lower the objective.
      aggregation: how token losses become one number.
    """
    stable = drop_unstable_steps(change_limit, shift_limit, learning_rate, top_k, symmetric)
    objective = clipped_objective(
        clip_low, clip_high, epsilon=epsilon, transforms=[stable], aggregation=aggregation
    )
    return Recipe(objective)


METHOD = Method(
    capo_curvature,
    changes="mask",
    denominator="rows",
    small={"top_k": 3},
    shown=Shown("brackets", "rejected_fraction", steps=300),
    # The vocabulary has 14 tokens. The learning rate is 20 times the authors': δ_H is multiplied by
    # 20, δ_F by 400.
    presets={
        "brackets": {"hyperparameters": ("change_limit=0.2", "shift_limit=0.04", "top_k=5")},
    },
)
