"""UCAS: pay unsure right answers more, punish sure wrong ones more, and charge sharp tokens.

"Unlocking Exploration in RLVR: Uncertainty-aware Advantage Shaping for Deeper Reasoning",
https://github.com/xvolcano02/UCAS

    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    c_i  = Σ_t (log Σ exp z - mean z), ĉ_i the same standardised in the group
    W_i  = exp(-β₊ ĉ_i) where A_i > 0, exp(β₋ ĉ_i) elsewhere
    A'_t = A_i W_i - c x_t, at least 0 where A_i > 0
    loss = Σ max(-A' ρ, -A' clip(ρ, 1 - ε, 1 + ε)) / Σ n_i

z are the logits of the policy that sampled at its temperature, x_t the raw logit of the sampled
token, min-max over the batch. Constants are hard-coded in the authors' code. Groups of equal
rewards are pushed down by -c x. In a group of one we have A = ĉ = 0; the code takes mean 0 and std
1 there. Their switch to Dr. GRPO leaves out both divisions by std.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.objectives.statistics.certainty import self_certainty
from rlvr_jax.objectives.statistics.groups import has_tokens
from rlvr_jax.objectives.statistics.masked import masked_mean, masked_sum
from rlvr_jax.objectives.statistics.scopes import min_max, within_batch, within_group, z_score
from rlvr_jax.types import Method, Recipe, replace
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Finite, Positive
from rlvr_jax.types.parts import part
from rlvr_jax.types.rollouts import Rollouts


def raw_logit(old_logp: Float[Array, "B T"], rollouts: Rollouts) -> Float[Array, "B T"]:
    """T (old_logp + old_logsumexp): the sampled token's logit before the temperature, old policy.

    Not invariant to a constant that is added to all logits: two models that are the same policy
    may differ in it.
    """
    return rollouts.temperature * (old_logp + rollouts.old_logsumexp)


def sharpness(
    logit: Float[Array, "B T"], mask: Bool[Array, "B T"], rollouts: Rollouts, epsilon: float
) -> Float[Array, "B T"]:
    """Min-max of the logits over all tokens of the batch; 1/2 everywhere if all are equal."""
    return min_max(logit, mask, within_batch(rollouts), epsilon, equal=0.5)


def standardized_certainty(
    certainty: Float[Array, "B"],
    mask: Bool[Array, "B T"],
    rollouts: Rollouts,
    epsilon: float = 1e-6,
) -> Float[Array, "B"]:
    """(c - mean) / (std + ε) over the rollouts of the group, n - 1; 0 for a group of one.

    A row without tokens has no certainty: it is not compared and has 0.
    """
    written = has_tokens(mask)[:, None]
    sets = within_group(rollouts)
    return z_score(certainty[:, None], written, sets, ddof=1, epsilon=epsilon)[:, 0]


def certainty_weight(
    score: Float[Array, "..."], advantage: Float[Array, "..."], positive: float, negative: float
) -> Float[Array, "..."]:
    """W = exp(-β₊ ĉ) where A > 0, exp(β₋ ĉ) elsewhere."""
    return jnp.exp(jnp.where(advantage > 0, -positive * score, negative * score))


@part(writes={"advantage"}, once=True)
def scale_by_certainty(positive: Finite, negative: Finite, epsilon: Positive = 1e-6) -> Transform:
    """Pays unsure right rollouts more and punishes sure wrong ones more: A' = A W.

    ĉ is the `standardized_certainty` of the sum of `self_certainty` over the rollout's tokens, W
    the `certainty_weight`. A sum, not a mean: within a group "sure" largely means "long".

    Args:
      positive, negative: β₊ and β₋.
      epsilon: added to the standard deviation, positive.
    Metrics: certainty_weight, its mean over the tokens.
    """

    def apply(signals, context, state):
        rollouts, mask = context.rollouts, signals.mask
        certainty = self_certainty(rollouts.old_logsumexp, rollouts.old_mean_logit)
        total = masked_sum(certainty, mask, axis=1)
        score = standardized_certainty(total, mask, rollouts, epsilon)[:, None]
        weight = certainty_weight(score, signals.advantage, positive, negative)
        metrics = {"certainty_weight": masked_mean(weight, mask)}
        return replace(signals, advantage=signals.advantage * weight), state, metrics

    reads = {"old_logsumexp", "old_mean_logit", "batch_statistics"}
    return Transform(apply, reads=reads)


@part(writes={"advantage"}, once=True)
def charge_sampled_logit(coefficient: Finite, epsilon: Positive = 1e-6) -> Transform:
    """Charges sharp tokens: A' = A - c x, at least 0 where A was positive.

    x is the `sharpness` of the token. Rollouts of advantage 0 are pushed down.

    Args:
      coefficient: c.
      epsilon: added to the denominator of the min-max, positive.
    """

    def apply(signals, context, state):
        rollouts, mask, advantage = context.rollouts, signals.mask, signals.advantage
        charge = sharpness(raw_logit(context.old_logp, rollouts), mask, rollouts, epsilon)
        charged = advantage - coefficient * charge
        floored = jnp.where(advantage > 0, jnp.maximum(charged, 0), charged)
        return replace(signals, advantage=jnp.where(mask, floored, 0)), state, {}

    reads = {"logp", "old_logsumexp", "batch_statistics"}
    return Transform(apply, reads=reads)


def ucas(
    positive_rate: float = 0.25,
    negative_rate: float = 0.35,
    logit_coefficient: float = 0.05,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
) -> Recipe:
    """GRPO's advantages, shaped by self-certainty and charged for raw logits, on the token mean.

    Args:
      positive_rate, negative_rate: strength of the certainty for either sign (β₊, β₋).
      logit_coefficient: charge of the sharpest token of the batch (c).
    """
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low,
            clip_high=clip_high,
            transforms=[
                scale_by_certainty(positive_rate, negative_rate),
                charge_sampled_logit(logit_coefficient),
            ],
        )
    )


METHOD = Method(
    ucas,
    "Unlocking Exploration in RLVR: Uncertainty-aware Advantage Shaping for Deeper Reasoning",
    "https://github.com/xvolcano02/UCAS",
    changes="advantage",
    baseline="other",
    reports=(
        "Qwen2.5-Math 1.5B and 7B, five maths sets: above GRPO, DAPO and entropy methods, longer "
        "and more diverse (no number)"
    ),
    traps=(
        "certainty is a sum, so sure means long; groups of equal rewards are pushed down, right "
        "ones too; raw logits differ between models that are one policy; advantages no longer sum "
        "to 0"
    ),
)
