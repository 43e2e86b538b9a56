"""Terms added to the loss of every token: entropy bonuses and divergences from a reference.

They follow the aggregation of the loss. Under `token_mean` an entropy bonus is the mean entropy of
the tokens; another aggregation weighs it as it weighs the tokens.
"""

from collections.abc import Callable, Iterable, Mapping

import jax
import jax.numpy as jnp
from jaxtyping import Array

from rlvr_jax.objectives.algebra.parts import Context, Transform
from rlvr_jax.objectives.statistics.divergences import Divergence, k3
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.types import Function, Signals, part, replace
from rlvr_jax.types.hyperparameters import Finite, NonNegative


@part(writes={"penalty"})
def statistic_penalty(coefficient: Finite, statistic: str) -> Transform:
    """Adds a statistic of the policy to the loss, with its gradient: penalty' = penalty + c · s.

    The statistics "kl", "reverse_kl" and "js" are exact divergences from a second policy, summed
    over the vocabulary. In contrast, `kl_penalty` uses an estimate at the sampled token.

    Args:
      statistic: field of `TokenStats` of shape [B, T].
    Metrics: statistic_penalty/<statistic> (its mean).
    """

    def apply(signals, context, state):
        values = context.stats.get(statistic)
        signals = replace(signals, penalty=signals.penalty + coefficient * values)
        metrics = {f"statistic_penalty/{statistic}": masked_mean(values, signals.mask)}
        return signals, state, metrics

    return Transform(apply, reads={statistic})


@part(writes={"term"})
def statistic_term(coefficient: Finite, statistic: str) -> Transform:
    """Adds the token mean of a statistic to the loss, under any aggregation: term + c · mean s.

    Args:
      statistic: field of `TokenStats` of shape [B, T].
    Metrics: statistic_term/<statistic> (its mean).
    """

    def apply(signals, context, state):
        mean = masked_mean(context.stats.get(statistic), signals.mask)
        signals = replace(signals, term=signals.term + coefficient * mean)
        return signals, state, {f"statistic_term/{statistic}": mean}

    return Transform(apply, reads={statistic})


@part(reads={"entropy"}, writes={"penalty"})
def entropy_bonus(coefficient: Finite) -> Transform:
    """Rewards entropy with a constant coefficient: penalty' = penalty - c · H.

    Args:
      coefficient: c; a negative value lowers the entropy.
    Source: Williams and Peng 1991, https://doi.org/10.1080/09540099108946587.
    """

    def apply(signals, context, state):
        penalty = signals.penalty - coefficient * context.stats.entropy
        return replace(signals, penalty=penalty), state, {}

    return apply


@part(writes={"penalty"})
def kl_penalty(
    coefficient: NonNegative,
    estimator: Divergence = k3,
    weight: Callable[[Signals, Context], Array] | None = None,
    reads: Iterable[str] = (),
) -> Transform:
    """Penalises the distance from the frozen reference: penalty' = penalty + β · estimator.

    Args:
      coefficient: weight of the divergence (β).
      estimator: one of `rlvr_jax.objectives.statistics.divergences`, with its bias and gradient.
      weight: (signals, context) -> [B, T] or [B, 1], a factor on β without gradient; None for 1.
      reads: optional records that the weight reads.
    Metrics: kl_penalty/<estimator> (its mean over the tokens before the weight, nats).
    Source: Shao et al. 2024, https://arxiv.org/abs/2402.03300.
    """

    def apply(signals, context, state):
        divergence = estimator(
            context.stats.logp, context.rollouts.reference_logp, context.old_logp
        )
        mean = masked_mean(divergence, signals.mask)
        if weight is not None:
            divergence = jax.lax.stop_gradient(weight(signals, context)) * divergence
        signals = replace(signals, penalty=signals.penalty + coefficient * divergence)
        return signals, state, {f"kl_penalty/{estimator.__name__}": mean}

    return Transform(apply, reads={"logp", "reference_logp", *reads})


@part
def scale_of_cell(factors: Mapping[int, Finite], other: Finite = 1.0) -> Function:
    """A factor by the row's label, for `kl_penalty(…, weight=scale_of_cell(…), reads={"cell"})`.

    Args:
      factors: the factors, by cell.
      other: the factor of all other rows.
    """

    def weight(signals, context):
        cell = context.rollouts.records["cell"]
        scale = jnp.full(cell.shape, other, signals.weight.dtype)
        for number, factor in factors.items():
            scale = jnp.where(cell == number, jnp.asarray(factor, scale.dtype), scale)
        return scale[:, None]

    return weight
