"""How an update at one token changes the entropy of the policy there, and what acts on it.

For a distribution p of entropy H, raising the logit of token a by ε changes H by -ε S_a with the
discriminator S_a = p_a (H + log p_a). A policy-gradient step α at the sampled token moves all
logits, by α (e_a - p), and changes H by -α (S_a - E S) with E S = Σ p² (H + log p).
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.statistics.choices import masked_top_k
from rlvr_jax.objectives.statistics.masked import (
    masked_count,
    masked_max,
    masked_mean,
    masked_min,
    masked_std,
    share_of,
)
from rlvr_jax.types import replace
from rlvr_jax.types.hyperparameters import Bound, NonNegative, OpenUnit, Share
from rlvr_jax.types.parts import part

__all__ = [
    "damp_entropy_change",
    "damp_entropy_change_exponentially",
    "drop_entropy_lowering",
    "drop_entropy_lowering_steps",
    "entropy_discriminator",
    "entropy_step",
    "estimated_entropy_change",
    "expected_discriminator",
]

Tokens = Float[Array, "B T"]
OF_THE_SAMPLER = frozenset({"logp", "sampled_entropy", "batch_statistics"})


def entropy_discriminator(logp: Tokens, entropy: Tokens) -> Tokens:
    """S = p (H + log p) of the sampled token; -S is d entropy / d its logit."""
    return jnp.exp(logp) * (entropy + logp)


def expected_discriminator(entropy: Tokens, p_squared: Tokens, p_squared_logp: Tokens) -> Tokens:
    """E S = Σ p² (H + log p), the mean of S over the vocabulary under p."""
    return entropy * p_squared + p_squared_logp


def entropy_step(advantage: Tokens, discriminator: Tokens, expected: Tokens) -> Tokens:
    """-A (S - E S): change of the entropy by a unit step of the policy gradient, first order."""
    return -advantage * (discriminator - expected)


@part(reads=OF_THE_SAMPLER, writes={"mask"}, once=True)
def drop_entropy_lowering(deviations: NonNegative) -> Transform:
    """Takes tokens out whose push down would lower the entropy most, against the batch's mean.

    With S of the policy that sampled (`entropy_discriminator`), its mean m and population standard
    deviation σ over the tokens of the batch: mask' = mask ∧ ¬(A < 0 ∧ S - m < -μ σ). Nothing is
    dropped if σ < 1e-12.

    Args:
      deviations: μ, at least 0.
    Reads: advantage, old_logp, rollouts.entropy. Writes: mask. Metrics: dropped_tokens_share.
    Raises:
      ValueError: negative deviations.
    Source: Clip_B, https://github.com/hiyuchang/Trinity-RFT.
    """

    def apply(signals, context, state):
        mask = signals.mask
        value = entropy_discriminator(context.old_logp, context.rollouts.entropy)
        centered, sigma = value - masked_mean(value, mask), masked_std(value, mask)
        dropped = (signals.advantage < 0) & (centered < -deviations * sigma) & (sigma >= 1e-12)
        metrics = {"dropped_tokens_share": masked_mean(dropped, mask)}
        return replace(signals, mask=mask & ~dropped), state, metrics

    return apply


@part(writes={"mask"}, once=True)
def drop_entropy_lowering_steps(deviations: NonNegative, max_fraction: Share) -> Transform:
    """Takes tokens out whose push down would lower the entropy most, by the step's own prediction.

    With D = E S - S of the policy that sampled and σ its population standard deviation over the n
    tokens of the batch, a token with A ≤ 0 and D > μ σ is a candidate. All candidates are dropped;
    but if they are more than f n, and those with A < 0 more than k = max(⌊f n⌋, 1), then of these
    only the k of largest D are (ties by rollout_id, then position). Those with A = 0 always are:
    they change nothing but the denominator.

    Args:
      deviations: μ, at least 0.
      max_fraction: f, in (0, 1].
    Reads: advantage, old_logp, rollouts.entropy, old_p_squared, old_p_squared_logp. Writes: mask.
      Metrics: dropped_tokens_share.
    Raises:
      ValueError: negative deviations, or max_fraction outside (0, 1].
    Source: Clip_V, https://github.com/hiyuchang/Trinity-RFT.
    """

    def apply(signals, context, state):
        mask, rollouts = signals.mask, context.rollouts
        expected = expected_discriminator(
            rollouts.entropy, rollouts.old_p_squared, rollouts.old_p_squared_logp
        )
        distance = expected - entropy_discriminator(context.old_logp, rollouts.entropy)
        far = mask & (distance > deviations * masked_std(distance, mask))
        negative, zero = far & (signals.advantage < 0), far & (signals.advantage == 0)
        allowed = share_of(max_fraction, masked_count(mask))
        k = jnp.maximum(allowed, 1)
        many = (masked_count(negative | zero) > allowed) & (masked_count(negative) > k)
        largest = masked_top_k(distance, negative, k, rollouts.rollout_id)
        dropped = jnp.where(many, largest, negative) | zero
        metrics = {"dropped_tokens_share": masked_mean(dropped, mask)}
        return replace(signals, mask=mask & ~dropped), state, metrics

    reads = OF_THE_SAMPLER | {"old_p_squared", "old_p_squared_logp"}
    return Transform(apply, reads=reads)


def estimated_entropy_change(
    advantage: Tokens, logp: Tokens, old_logp: Tokens, entropy: Tokens
) -> Tokens:
    """Ω = (A / q) p (1 - p) (log p + H), an estimate up to scale and sign; 0 where not finite.

    p = exp(logp) is clamped to [1e-8, 1 - 1e-8], q = exp(old_logp) to [1e-8, 1]. A derivation for
    the sampled logit alone has p² (1 - p); this is the form of the authors' code.

    Source: STEER, https://github.com/zz-haooo/STEER.
    """
    p = jnp.clip(jnp.exp(logp), 1e-8, 1 - 1e-8)
    q = jnp.clip(jnp.exp(old_logp), 1e-8, 1)
    change = advantage / q * p * (1 - p) * (jnp.log(p) + entropy)
    return jnp.where(jnp.isfinite(change), change, 0)


@part(reads={"logp", "entropy", "batch_statistics"}, writes={"weight"})
def damp_entropy_change(low: float, high: float) -> Transform:
    """Weighs tokens by how little they change the entropy, falling linearly over the batch.

    With u = |Ω| (`estimated_entropy_change`): weight' = weight · w, w = high at the smallest u of
    the batch and low at the largest; (low + high) / 2 if all are equal.

    Args:
      low, high: bounds of the factor w.
    Reads: advantage, logp, old_logp, entropy, mask. Writes: weight. Metrics: entropy_change/max.
    Raises:
      ValueError: not 0 ≤ low ≤ high.
    Source: STEER, https://github.com/zz-haooo/STEER.
    """
    if not 0 <= low <= high:
        raise ValueError(f"damp_entropy_change: low must be in [0, high {high}], got {low}")

    def weight(size, mask):
        least, most = masked_min(size, mask), masked_max(size, mask)
        spread = most - least
        share = (size - least) / jnp.where(spread > 0, spread, 1)
        falling = jnp.clip(high - share * (high - low), low, high)
        return jnp.where(spread > 0, falling, (low + high) / 2)

    return _damp(weight)


@part(reads={"logp", "entropy", "batch_statistics"}, writes={"weight"})
def damp_entropy_change_exponentially(low: OpenUnit, floor: Bound) -> Transform:
    """Weighs tokens by how little they change the entropy, falling exponentially.

    With u = |Ω| (`estimated_entropy_change`) and U its largest value in the batch: weight' = weight
    · w, w = exp(-k u) clamped to [low, 1], k = -ln(low) / max(U, floor).

    Args:
      low: the smallest factor, in (0, 1).
      floor: of U, so that a batch in which nothing changes is not weighed by noise; positive.
    Reads: advantage, logp, old_logp, entropy, mask. Writes: weight. Metrics: entropy_change/max.
    Raises:
      ValueError: low outside (0, 1), or floor not positive.
    Source: STEER, https://github.com/zz-haooo/STEER.
    """

    def weight(size, mask):
        rate = -jnp.log(jnp.asarray(low, size.dtype)) / jnp.maximum(masked_max(size, mask), floor)
        return jnp.clip(jnp.exp(-rate * size), low, 1)

    return _damp(weight)


def _damp(weight):
    def apply(signals, context, state):
        stats = jax.lax.stop_gradient(context.stats)
        change = estimated_entropy_change(
            signals.advantage, stats.logp, context.old_logp, stats.entropy
        )
        size = jnp.abs(change)
        factor = weight(size, signals.mask)
        metrics = {"entropy_change/max": masked_max(size, signals.mask)}
        return replace(signals, weight=signals.weight * factor), state, metrics

    return apply
