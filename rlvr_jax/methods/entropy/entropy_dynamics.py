"""Clip_B and Clip_V: drop the tokens whose negative update would lower the entropy most.

"On the Entropy Dynamics in Reinforcement Fine-Tuning of Large Language Models",
https://github.com/hiyuchang/Trinity-RFT

    S_t = p_t (H_t + log p_t),  E S_t = Σ p² (H_t + log p), of the policy that sampled
    Clip_B drops tokens with A < 0 and S - mean S < -μ_B σ(S)
    Clip_V drops tokens with A ≤ 0 and E S - S > μ_V σ(E S - S), of A < 0 at most a fraction f
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) / n, both over the n tokens that remain

Mean and population deviations are those of the batch. Clip_B and Clip_V are two methods. Clip_B is
the default; it requires only the sampler's records. For Clip_V set `batch_deviations=None,
vocabulary_deviations=8.5`, the authors' value (their class default is 2.0). Constants are those of
their example configurations, except ε. It is 0.2 here, as in their framework's PPO loss.

Left out: a filter of the data for pass rates in (1/16, 15/16).
Reports: Qwen2.5-7B-Instruct: entropy stays high, and mean and pass@k on AIME24, AIME25 and DAPO500
are above GRPO (no numbers).
Traps: A small batch may have no token beyond 2.5 deviations; the method is then GRPO. Clip_V also
drops tokens of A = 0 beyond its limit. The theory treats both signs, the code only negative
advantages.
"""

import jax.numpy as jnp

from rlvr_jax.objectives import Transform, clipped_objective, masked_top_k, part
from rlvr_jax.objectives.statistics.masked import fraction_of, masked_count, masked_mean, masked_std
from rlvr_jax.types import Method, Recipe, Shown, Values, replace
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, NonNegative, Share

ENTROPY_READS = {"logp", "sampled_entropy", "batch_statistics"}


@part(reads=ENTROPY_READS, writes={"mask"}, once=True)
def drop_entropy_lowering(deviations: NonNegative) -> Transform:
    """Clip_B: mask' = mask ∧ ¬(A < 0 ∧ S - mean S < -μ σ(S)); nothing is dropped if σ < 1e-12.

    S is the `entropy_discriminator` of the policy that sampled.

    Args:
      deviations: standard deviations from the mean beyond which a token is dropped (μ).
    Metrics: dropped_tokens_fraction (of the tokens).
    """

    def apply(signals, context, state):
        mask = signals.mask
        value = entropy_discriminator(context.old_logp, context.rollouts.entropy)
        centered, sigma = value - masked_mean(value, mask), masked_std(value, mask)
        dropped = (signals.advantage < 0) & (centered < -deviations * sigma) & (sigma >= 1e-12)
        metrics = {"dropped_tokens_fraction": masked_mean(dropped, mask)}
        return replace(signals, mask=mask & ~dropped), state, metrics

    return apply


def entropy_discriminator(logp: Values, entropy: Values) -> Values:
    """S = p (H + log p) of the sampled token; -S is d entropy / d its logit."""
    return jnp.exp(logp) * (entropy + logp)


@part(reads=ENTROPY_READS | {"old_p_squared", "old_p_squared_logp"}, writes={"mask"}, once=True)
def drop_entropy_lowering_steps(deviations: NonNegative, max_fraction: Share) -> Transform:
    """Clip_V: drops tokens with A ≤ 0 and D = E S - S > μ σ(D).

    All such tokens are dropped, unless they are more than f n, and those with A < 0 more than k =
    max(⌊f n⌋, 1). Then of those with A < 0 only the k of largest D are dropped (ties by rollout_id,
    then position). Those with A = 0 always are: they change only the denominator.

    Args:
      deviations: standard deviations above which a token is dropped (μ).
      max_fraction: f, of the n tokens of the batch.
    Metrics: dropped_tokens_fraction (of the tokens).
    """

    def apply(signals, context, state):
        mask, rollouts = signals.mask, context.rollouts
        expected = expected_discriminator(
            rollouts.entropy,
            rollouts.records["old_p_squared"],
            rollouts.records["old_p_squared_logp"],
        )
        distance = expected - entropy_discriminator(context.old_logp, rollouts.entropy)
        far = mask & (distance > deviations * masked_std(distance, mask))
        negative, zero = far & (signals.advantage < 0), far & (signals.advantage == 0)
        allowed = fraction_of(max_fraction, masked_count(mask))
        k = jnp.maximum(allowed, 1)
        many = (masked_count(negative | zero) > allowed) & (masked_count(negative) > k)
        largest = masked_top_k(distance, negative, k, rollouts.rollout_id)
        dropped = jnp.where(many, largest, negative) | zero
        metrics = {"dropped_tokens_fraction": masked_mean(dropped, mask)}
        return replace(signals, mask=mask & ~dropped), state, metrics

    return apply


def expected_discriminator(entropy: Values, p_squared: Values, p_squared_logp: Values) -> Values:
    """E S = Σ p² (H + log p), the mean of S over the vocabulary under p.

    To first order, a unit step of the policy gradient changes the entropy by -A (S - E S).
    """
    return entropy * p_squared + p_squared_logp


def entropy_dynamics(
    batch_deviations: NonNegative | None = 2.5,
    vocabulary_deviations: NonNegative | None = None,
    max_fraction: Share = 1e-4,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
) -> Recipe:
    """Applies GRPO's advantages with the mean over the tokens that are not dropped.

    Args:
      batch_deviations: threshold of Clip_B in standard deviations (μ_B); None leaves it out.
      vocabulary_deviations: threshold of Clip_V (μ_V); None leaves it out.
      max_fraction: largest fraction of the tokens that Clip_V drops among those with A < 0 (f).
    """
    drops = []
    if batch_deviations is not None:
        drops.append(drop_entropy_lowering(batch_deviations))
    if vocabulary_deviations is not None:
        drops.append(drop_entropy_lowering_steps(vocabulary_deviations, max_fraction))
    return Recipe(objective=clipped_objective(clip_low, clip_high, transforms=drops))


METHOD = Method(
    entropy_dynamics,
    changes="mask",
    small={"batch_deviations": None, "vocabulary_deviations": 0.25, "max_fraction": 0.05},
    shown=Shown("brackets", "dropped_tokens_fraction", steps=300),
    # A quota of tokens, as that of `clip_cov`.
    presets={"brackets": {"hyperparameters": ("max_fraction=0.00375",)}},
)
