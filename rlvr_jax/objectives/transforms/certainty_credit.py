"""Advantages shaped by how peaked the policy that sampled was: self-certainty and raw logits."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.statistics.certainty import self_certainty
from rlvr_jax.objectives.statistics.groups import has_tokens
from rlvr_jax.objectives.statistics.masked import masked_mean, masked_sum
from rlvr_jax.objectives.statistics.scopes import min_max, within_batch, within_group, z_score
from rlvr_jax.types import Rollouts, replace
from rlvr_jax.types.hyperparameters import Finite, Positive
from rlvr_jax.types.parts import part

__all__ = [
    "certainty_weight",
    "charge_sampled_logit",
    "raw_logit",
    "scale_by_certainty",
    "sharpness",
    "standardized_certainty",
]


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
    Reads: advantage, old_logsumexp, old_mean_logit, group, mask. Writes: advantage. Metrics:
      certainty_weight, its mean over the tokens.
    Raises:
      ValueError: a number that is not finite, or epsilon not positive.
    Source: UCAS, https://github.com/xvolcano02/UCAS.
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
    Reads: advantage, old_logp, old_logsumexp, temperature, mask. Writes: advantage. Metrics: none.
    Raises:
      ValueError: coefficient not finite, or epsilon not positive.
    Source: UCAS, https://github.com/xvolcano02/UCAS.
    """

    def apply(signals, context, state):
        rollouts, mask, advantage = context.rollouts, signals.mask, signals.advantage
        charge = sharpness(raw_logit(context.old_logp, rollouts), mask, rollouts, epsilon)
        charged = advantage - coefficient * charge
        floored = jnp.where(advantage > 0, jnp.maximum(charged, 0), charged)
        return replace(signals, advantage=jnp.where(mask, floored, 0)), state, {}

    reads = {"logp", "old_logsumexp", "batch_statistics"}
    return Transform(apply, reads=reads)
