"""Label smoothing through the ratio: at uncertain tokens the likeliest ones share in the credit."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from rlvr_jax.objectives.algebra.parts import Context, Transform
from rlvr_jax.objectives.statistics.masked import masked_mean, masked_sum
from rlvr_jax.objectives.statistics.scopes import above_quantile, within_response
from rlvr_jax.types import replace
from rlvr_jax.types.hyperparameters import Count, NonNegative, Unit
from rlvr_jax.types.parts import part

__all__ = ["boost_favourites", "is_favourite", "smooth_ratio", "uncertain_tokens"]

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
    Reads: ratio, outcome, entropy, mask, topk_logp, old_topk_logp. Writes: ratio, chosen.
      Metrics: smoothed_share.
    Raises:
      ValueError: share or quantile outside [0, 1], or top_k below 1.
    Source: SimKO, https://github.com/CLR-Lab/SimKO.
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
    Reads: advantage, entropy, max_id, tokens, mask. Writes: advantage, chosen.
      Metrics: boosted_share.
    Raises:
      ValueError: a negative factor, or quantile outside [0, 1].
    Source: SimKO, https://github.com/CLR-Lab/SimKO.
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
