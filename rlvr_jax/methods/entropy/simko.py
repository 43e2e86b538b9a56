"""SimKO: share the credit of right answers with likely tokens, push wrong favourites harder.

"SimKO: Simple Pass@K Policy Optimization", https://github.com/CLR-Lab/SimKO

    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    gate = tokens whose entropy is above the τ quantile of their response
    ρ'_t = (1 - α) ρ + (α/K) Σ_k sg(ρ / ρ_k) ρ_k at gated tokens of right answers, ρ elsewhere
    A'_t = λ A_i at gated tokens of answers with A < 0 whose token is the policy's likeliest
    loss = Σ max(-A' ρ', -A' clip(ρ', 1 - ε, 1 + ε)) / Σ n_i

k runs over the K likeliest tokens of the current policy, whose log-probs under the old policy are
needed too: with one update per batch they are those of sampling time. Constants are those of the
authors' code, where λ is hard-coded.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from rlvr_jax.objectives.algebra.parts import Context, Transform
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.objectives.statistics.masked import masked_mean, masked_sum
from rlvr_jax.objectives.statistics.scopes import above_quantile, within_response
from rlvr_jax.types import Method, Recipe, replace
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Count, NonNegative, Unit
from rlvr_jax.types.parts import part

Mask = Bool[Array, "B T"]


def uncertain_tokens(context: Context, mask: Mask, quantile: float) -> Mask:
    """Tokens whose entropy lies strictly above that quantile of their own response, bool [B, T]."""
    entropy = jax.lax.stop_gradient(context.stats.entropy)
    return above_quantile(entropy, mask, within_response(context.rollouts), quantile)


def is_favourite(context: Context, mask: Mask) -> Mask:
    """Sampled tokens that the current policy finds likeliest, bool [B, T]."""
    return mask & (context.stats.max_id.astype(jnp.int32) == context.rollouts.tokens)


@part(writes={"chosen", "ratio"})
def smooth_ratio(share: float, top_k: Count, quantile: float) -> Transform:
    """Spreads part of the gradient of uncertain tokens of right answers over the likeliest tokens.

    At `uncertain_tokens` of rollouts with outcome 1, with ρ_k the ratio of the k-th likeliest token
    of the current policy: ρ' = (1 - α) ρ + (α/K) Σ_k sg(ρ) ρ_k / (sg(ρ_k) + 1e-8). Its value is
    that of ρ, its gradient ρ [(1 - α) ∇log π(y) + (α/K) Σ_k ∇log π(k)]. A clip passes all or none.

    Args:
      share: α, in [0, 1].
      top_k: K.
      quantile: of the entropies of a response, in [0, 1].
    Metrics: smoothed_share.
    Raises:
      ValueError: share or quantile outside [0, 1], or top_k below 1.
    """
    for name, value in (("share", share), ("quantile", quantile)):
        if not 0 <= value <= 1:
            raise ValueError(f"smooth_ratio: {name} must be in [0, 1], got {value}")

    def apply(signals, context, state):
        mask, rollouts = signals.mask, context.rollouts
        right = (rollouts.outcome == 1)[:, None]
        chosen = right & uncertain_tokens(context, mask, quantile)
        log_ratio = jnp.where(
            chosen[..., None], context.stats.topk_logp - rollouts.old_topk_logp, 0
        )
        others = jnp.exp(log_ratio)
        relative = jnp.mean(others / (jax.lax.stop_gradient(others) + 1e-8), axis=-1)
        spread = jax.lax.stop_gradient(signals.ratio) * relative
        mixed = (1 - share) * signals.ratio + share * spread
        metrics = {"smoothed_share": masked_mean(chosen, mask)}
        ratio = jnp.where(chosen, mixed, signals.ratio)
        return replace(signals, ratio=ratio, chosen=signals.chosen | chosen), state, metrics

    reads = {"entropy", "topk_logp", "old_topk_logp"}
    return Transform(apply, reads=reads, options=(("top_k", top_k),))


@part(reads={"entropy", "max_id"}, writes={"advantage", "chosen"})
def boost_favourites(factor: NonNegative, quantile: Unit) -> Transform:
    """Pushes harder against the likeliest token where a wrong answer was uncertain: A' = A · f.

    At `uncertain_tokens` that are the policy's `is_favourite`, in rollouts whose advantages have a
    negative sum.

    Args:
      factor: f, at least 0.
      quantile: of the entropies of a response, in [0, 1].
    Metrics: boosted_share.
    """

    def apply(signals, context, state):
        mask = signals.mask
        negative = masked_sum(signals.advantage, mask, axis=1)[:, None] < 0
        chosen = uncertain_tokens(context, mask, quantile) & is_favourite(context, mask) & negative
        advantage = jnp.where(chosen, factor * signals.advantage, signals.advantage)
        metrics = {"boosted_share": masked_mean(chosen, mask)}
        signals = replace(signals, advantage=advantage, chosen=signals.chosen | chosen)
        return signals, state, metrics

    return apply


def simko(
    share: float = 0.01,
    top_k: int = 3,
    quantile: float = 0.8,
    negative_factor: float = 1.1,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
) -> Recipe:
    """GRPO's advantages on the token mean, with a smoothed ratio and a boost.

    Args:
      share: of the gradient that the likeliest tokens get (α).
      top_k: how many they are (K).
      quantile: of the entropies of a response above which a token is gated (τ).
      negative_factor: on the advantage of gated favourites of wrong answers (λ).
    """
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low,
            clip_high=clip_high,
            transforms=[
                smooth_ratio(share, top_k, quantile),
                boost_favourites(negative_factor, quantile),
            ],
        )
    )


METHOD = Method(
    simko,
    "SimKO: Simple Pass@K Policy Optimization",
    "https://github.com/CLR-Lab/SimKO",
    changes="advantage, surrogate",
    gradient="stopped",
    reports=(
        "Qwen2.5-Math-7B and others: higher pass@k for all k up to 256 at equal or higher pass@1"
    ),
    traps=(
        "the likeliest tokens are those of now, their old log-probs those of the weights that "
        "sampled: one update a batch"
    ),
)
