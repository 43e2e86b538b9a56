"""STEER: reduces the weight of tokens whose update would change the entropy most.

"Rethinking Entropy Interventions in RLVR: An Entropy Change Perspective",
https://github.com/zz-haooo/STEER

    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    Ω_t  = (A / q) p (1 - p) (log p + H), p and q of the current and the old policy
    w_t  = w_max - (|Ω_t| - min |Ω|) (w_max - w_min) / (max |Ω| - min |Ω|)
    l_t  = max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)), at most -c A where A < 0
    loss = Σ w_t l_t / Σ n_i

Minimum and maximum are over the batch; the authors' code takes them per micro-batch. Constants are
those of the authors' scripts.

Left out: the authors' second form, w = exp(-k |Ω|).
Reports: above baselines on six maths and three coding benchmarks, without entropy collapse.
Traps: The range depends on one extreme: if a sampled token has a tiny old probability, all others
have the weight w_max. The denominator does not include weights.
"""

import jax
import jax.numpy as jnp

from rlvr_jax.objectives import Transform, clipped_objective, masked_max, masked_min, part
from rlvr_jax.types import LOSS_ON_BRACKETS, Method, Recipe, Values, replace
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, DualClip, NonNegative


@part(reads={"logp", "entropy", "batch_statistics"}, writes={"weight"})
def damp_entropy_change(low: NonNegative, high: NonNegative) -> Transform:
    """Weighs tokens by how little they change the entropy, falling linearly over the batch.

    u is |Ω| (`estimated_entropy_change`), and weight' = weight · w. w is `high` at the smallest u
    of the batch and `low` at the largest; (low + high) / 2 if all are equal.

    Args:
      low, high: bounds of the factor w.
    Metrics: entropy_change/max (largest size of an estimated change of entropy, nats).
    Raises:
      ValueError: low above high.
    """
    if low > high:
        raise ValueError(f"damp_entropy_change: low must be in [0, high {high}], got {low}")

    def apply(signals, context, state):
        stats, mask = jax.lax.stop_gradient(context.stats), signals.mask
        size = jnp.abs(
            estimated_entropy_change(signals.advantage, stats.logp, context.old_logp, stats.entropy)
        )
        least, most = masked_min(size, mask), masked_max(size, mask)
        spread = most - least
        place = (size - least) / jnp.where(spread > 0, spread, 1)
        falling = jnp.clip(high - place * (high - low), low, high)
        factor = jnp.where(spread > 0, falling, (low + high) / 2)
        signals = replace(signals, weight=signals.weight * factor)
        return signals, state, {"entropy_change/max": most}

    return apply


def estimated_entropy_change(
    advantage: Values, logp: Values, old_logp: Values, entropy: Values
) -> Values:
    """Ω = (A / q) p (1 - p) (log p + H), an estimate up to scale and sign; 0 where not finite.

    p = exp(logp) is clamped to [1e-8, 1 - 1e-8], q = exp(old_logp) to [1e-8, 1]. A derivation for
    only the sampled logit has p² (1 - p); this is the form of the authors' code.

    Args:
      advantage: of the tokens, [B, T] (A).
      logp: of the current policy, nats, [B, T].
      old_logp: of the policy that sampled, nats, [B, T].
      entropy: of the current policy, nats, [B, T] (H).
    """
    p = jnp.clip(jnp.exp(logp), 1e-8, 1 - 1e-8)
    q = jnp.clip(jnp.exp(old_logp), 1e-8, 1)
    change = advantage / q * p * (1 - p) * (jnp.log(p) + entropy)
    return jnp.where(jnp.isfinite(change), change, 0)


def steer(
    weight_low: NonNegative = 0.8,
    weight_high: NonNegative = 1.2,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.28,
    dual_clip: DualClip = 10.0,
) -> Recipe:
    """Applies DAPO's clip with a dual bound, weighted by how little a token changes the entropy.

    Args:
      weight_low, weight_high: weights of the largest and the smallest change (w_min, w_max).
    """
    transforms = [damp_entropy_change(weight_low, weight_high)]
    objective = clipped_objective(clip_low, clip_high, transforms=transforms, dual_clip=dual_clip)
    return Recipe(objective)


METHOD = Method(steer, changes="weight, surrogate", gradient="stopped", shown=LOSS_ON_BRACKETS)
