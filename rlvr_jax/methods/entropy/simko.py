"""SimKO: spreads the credit of correct responses over likely tokens; likely errors cost more.

"SimKO: Simple Pass@K Policy Optimization", https://github.com/CLR-Lab/SimKO

    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    gate = tokens whose entropy is above the τ quantile of their response
    ρ'_t = (1 - α) ρ + (α/K) Σ_k sg(ρ / ρ_k) ρ_k at gated tokens of correct responses, else ρ
    A'_t = λ A_i at gated tokens of responses with A < 0 whose token is the policy's likeliest
    loss = Σ max(-A' ρ', -A' clip(ρ', 1 - ε, 1 + ε)) / Σ n_i

k runs over the K likeliest tokens of the current policy, α is `fraction`, τ `quantile`, λ
`negative_factor`. Constants are those of the authors' code, where λ is hard-coded.

Reports: Qwen2.5-Math-7B and others: higher pass@k for all k up to 256 at equal or higher pass@1 (no
numbers).
Traps: Use one update per batch: the likeliest tokens are the current policy's, but their old
log-probs are those of the weights that sampled.
"""

import jax
import jax.numpy as jnp

from rlvr_jax.objectives import Context, Transform, clipped_objective, masked_mean, masked_sum, part
from rlvr_jax.objectives.statistics.scopes import above_quantile, within_response
from rlvr_jax.types import Mask, Method, Recipe, Shown, replace
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Count, NonNegative, Unit


@part(reads={"entropy", "topk_logp", "old_topk_logp"}, writes={"chosen", "ratio"})
def smooth_ratio(fraction: Unit, top_k: Count, quantile: Unit) -> Transform:
    """Spreads part of the gradient of uncertain tokens of correct responses over likely tokens.

    ρ_k is the ratio of the current policy's k-th likeliest token. At `uncertain_tokens` of rollouts
    with outcome 1: ρ' = (1 - α) ρ + (α/K) Σ_k sg(ρ) ρ_k / (sg(ρ_k) + 1e-8). Its value is that of ρ,
    its gradient ρ [(1 - α) ∇log π(y) + (α/K) Σ_k ∇log π(k)]. A clip passes all or none.

    Metrics: smoothed_fraction (of the tokens).
    """

    def apply(signals, context, state):
        mask, rollouts = signals.mask, context.rollouts
        correct = (rollouts.outcome == 1)[:, None]
        chosen = correct & uncertain_tokens(context, mask, quantile)
        change = context.stats.records["topk_logp"] - rollouts.records["old_topk_logp"]
        log_ratio = jnp.where(chosen[..., None], change, 0)
        others = jnp.exp(log_ratio)
        relative = jnp.mean(others / (jax.lax.stop_gradient(others) + 1e-8), axis=-1)
        spread = jax.lax.stop_gradient(signals.ratio) * relative
        mixed = (1 - fraction) * signals.ratio + fraction * spread
        metrics = {"smoothed_fraction": masked_mean(chosen, mask)}
        ratio = jnp.where(chosen, mixed, signals.ratio)
        return replace(signals, ratio=ratio, chosen=signals.chosen | chosen), state, metrics

    return Transform(apply, options=(("top_k", top_k),))


def uncertain_tokens(context: Context, mask: Mask, quantile: float) -> Mask:
    """Tokens whose entropy is strictly above that quantile of their response."""
    entropy = jax.lax.stop_gradient(context.stats.entropy)
    return above_quantile(entropy, mask, within_response(context.rollouts), quantile)


@part(reads={"entropy", "max_id"}, writes={"advantage", "chosen"})
def boost_favourites(factor: NonNegative, quantile: Unit) -> Transform:
    """Increases the penalty of the likeliest token where an error was uncertain: A' = A · f.

    At `uncertain_tokens` that are the current policy's likeliest, in rollouts whose advantages have
    a negative sum.

    Metrics: boosted_fraction (of the tokens).
    """

    def apply(signals, context, state):
        mask = signals.mask
        negative = masked_sum(signals.advantage, mask, axis=1)[:, None] < 0
        favourite = context.stats.records["max_id"].astype(jnp.int32) == context.rollouts.tokens
        chosen = uncertain_tokens(context, mask, quantile) & favourite & negative
        advantage = jnp.where(chosen, factor * signals.advantage, signals.advantage)
        metrics = {"boosted_fraction": masked_mean(chosen, mask)}
        signals = replace(signals, advantage=advantage, chosen=signals.chosen | chosen)
        return signals, state, metrics

    return apply


def simko(
    fraction: Unit = 0.01,
    top_k: Count = 3,
    quantile: Unit = 0.8,
    negative_factor: NonNegative = 1.1,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
) -> Recipe:
    """Applies GRPO's advantages with a smoothed ratio and a factor on likely errors.

    Args:
      fraction: fraction of the gradient that the likeliest tokens get (α).
      top_k: number of the likeliest tokens (K).
      quantile: quantile of a response's entropies above which a token is gated (τ).
      negative_factor: factor on the advantage of gated likeliest tokens of incorrect responses (λ).
    """
    transforms = [
        smooth_ratio(fraction, top_k, quantile),
        boost_favourites(negative_factor, quantile),
    ]
    return Recipe(objective=clipped_objective(clip_low, clip_high, transforms=transforms))


METHOD = Method(
    simko,
    changes="advantage, surrogate",
    gradient="stopped",
    shown=Shown("brackets", "boosted_fraction", steps=300),
    # Made for one update per batch.
    presets={"brackets": {"minibatches": 1}, "arithmetic:hard": {"minibatches": 1}},
)
