"""Lp-Reg: protects improbable tokens of incorrect rollouts that would pass a min-p filter.

"Low-probability Tokens Sustain Exploration in Reinforcement Learning with Verifiable Reward",
https://github.com/CarlanLark/Lp-Reg-dev

    S    = tokens with A < 0 among the fraction ρ of smallest logp, with logp < log π̃
    π̃    = old policy without entries below κ · max p, renormalized
    loss = Σ [t not in S: max(-A ρ_t, -A clip(ρ_t, 1 - ε_low, 1 + ε_high))
              t in S:     -A ρ_t + c · k3] / Σ n_i,    k3 = min(e^d - d - 1, 10), d = log π̃ - logp

The gradient of k3 is (1 - π̃ / π) ∇logp: it raises the token towards π̃, against its advantage. In
the first update it is at most about the mass that the filter has dropped. Where nothing was
dropped, no token is chosen. ρ (`fraction`) is over the batch; the authors count it per micro-batch.
Fewer than two chosen tokens disable the method, in both. Their config also offers the current or
the reference policy as source of π̃, a fixed threshold, and a fraction of positive tokens. The
recipes do not use them. Defaults are those for Qwen3-14B (ρ is 0.005 for Qwen2.5-32B); κ in the
config is 0.1.

Reports: Qwen3-14B base, five maths sets: 60.17 %, 2.66 points above the best earlier entropy
method.
Traps: A token is protected only if the filter drops some mass. Few incorrect responses have no
candidates.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.objectives import Transform, clipped_objective, k3_clamped, masked_top_k, part
from rlvr_jax.objectives.statistics.masked import fraction_of, masked_count, masked_mean
from rlvr_jax.types import Ids, Mask, Method, Recipe, Shown, Values, arguments_of, replace
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Epsilon, NonNegative, Share


@part(
    reads={"logp", "old_max_logp", "old_min_p_mass", "batch_statistics"},
    writes={"chosen", "clip_high", "clip_low", "penalty"},
)
def protect_low_probability(
    fraction: Share, min_p: Share, coefficient: NonNegative = 1.0
) -> Transform:
    """Raises a few punished, improbable tokens towards their probability under the min-p filter.

    Of the `low_probability_candidates`, those with logp < log π̃ (`min_p_proxy`) are protected. They
    get c · k3(π̃, π) as penalty, which raises their probability towards π̃, and an open trust region.
    Tokens that min-p has dropped are noise and never protected; nor, in the first update, is any
    token where min-p has dropped nothing.

    Args:
      fraction: of the tokens of negative advantage that are candidates (ρ).
      min_p: threshold of the filter, relative to the largest probability (κ).
      coefficient: weight of the pull towards the filtered policy (c).
    Metrics: chosen_fraction (the protected tokens), eligible_fraction (the candidates).
    """

    def apply(signals, context, state):
        rollouts, logp, mask = context.rollouts, context.stats.logp, signals.mask
        now = jax.lax.stop_gradient(logp)
        candidates = low_probability_candidates(
            signals.advantage, now, mask, fraction, rollouts.rollout_id
        )
        proxy = min_p_proxy(
            context.old_logp,
            rollouts.records["old_max_logp"],
            rollouts.records["old_min_p_mass"],
            min_p,
        )
        protected = candidates & (now < proxy)
        # Off the choice the proxy may be -inf, whose gradient is NaN even where it is not used.
        target = jnp.where(protected, proxy, now)
        pull = jnp.where(protected, coefficient * k3_clamped(logp, target, context.old_logp), 0)
        signals = replace(
            signals,
            clip_low=jnp.where(protected, jnp.inf, signals.clip_low),
            clip_high=jnp.where(protected, jnp.inf, signals.clip_high),
            penalty=signals.penalty + pull,
            chosen=signals.chosen | protected,
        )
        metrics = {
            "chosen_fraction": masked_mean(protected, mask),
            "eligible_fraction": masked_mean(candidates, mask),
        }
        return signals, state, metrics

    return Transform(apply, options=(("min_p", min_p),))


def low_probability_candidates(
    advantage: Values, logp: Values, mask: Mask, fraction: float, rollout_id: Ids
) -> Mask:
    """The k tokens of smallest log-prob among those with a negative advantage.

    k = max(⌊ρ · number of such tokens⌋, 1), and none if k is 1; ties by rollout_id.

    Args:
      advantage: of the tokens, [B, T].
      logp: of the current policy, nats, [B, T].
      mask: response tokens that count, bool [B, T].
      fraction: fraction of the tokens of negative advantage that are chosen (ρ).
      rollout_id: number of each row, which decides between equal log-probs, int [B].
    """
    negative = mask & (advantage < 0)
    k = jnp.maximum(fraction_of(fraction, masked_count(negative)), 1)
    return masked_top_k(-logp, negative, k, rollout_id) & (k > 1)


def min_p_proxy(
    logp: Float[Array, "..."],
    max_logp: Float[Array, "..."],
    min_p_mass: Float[Array, "..."],
    min_p: float,
) -> Float[Array, "..."]:
    """Log-prob of the token after everything below min_p · max p is dropped, -inf if it was.

    Args:
      logp: log-prob of the token, nats.
      max_logp: largest log-prob of the vocabulary, nats.
      min_p_mass: sum of the entries with p ≥ min_p · max p.
      min_p: threshold of the entries, as a fraction of the largest probability.
    """
    kept = logp >= jnp.log(jnp.asarray(min_p, logp.dtype)) + max_logp
    return jnp.where(kept, logp - jnp.log(jnp.where(kept, min_p_mass, 1)), -jnp.inf)


@arguments_of(protect_low_probability, fraction=0.01, min_p=0.02)
def lp_reg(
    clip_low: ClipLow = 1.0, clip_high: ClipHigh = 9.0, epsilon: Epsilon = 1e-6, **protected: Any
) -> Recipe:
    """Applies GRPO's advantages with a nearly open clip and a few protected tokens."""
    transforms = [protect_low_probability(**protected)]
    return Recipe(clipped_objective(clip_low, clip_high, epsilon=epsilon, transforms=transforms))


METHOD = Method(
    lp_reg, changes="surrogate, regularizer", shown=Shown("brackets", "chosen_fraction", steps=300)
)
