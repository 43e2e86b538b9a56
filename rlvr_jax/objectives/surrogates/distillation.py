"""Distillation: the loss of a token is how far the policy is from a teacher at it.

A distance is one of

    `over_vocabulary(statistic)`      exact: `TokenStats.kl`, `reverse_kl` or `js`
    `over_likeliest(top_k, alpha)`    over the policy's k likeliest tokens and all others as one
    `at_sampled_token()`              an estimate from the token that was drawn

Gradient flows through the policy alone.
"""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.objectives.algebra.parts import Context, Options, Surrogate
from rlvr_jax.objectives.statistics.ratios import clamped_token_ratio, token_ratio
from rlvr_jax.types import replace
from rlvr_jax.types.hyperparameters import Bound, Count, Unit
from rlvr_jax.types.parts import Part, part

__all__ = [
    "Distance",
    "at_sampled_token",
    "distilled",
    "over_likeliest",
    "over_vocabulary",
    "with_tail",
]

LEAST_TAIL = 1e-7
"""The mass of all other tokens is taken to be this at least, so that logarithms stay finite."""


@dataclass(frozen=True, eq=False, repr=False)
class Distance(Part):
    """Of the policy from a teacher at a token.

    Fields:
      values: (context) -> [B, T].
      reads, options: as of `Surrogate`.
    """

    values: Callable[[Context], Float[Array, "B T"]]
    reads: frozenset[str] = frozenset()
    options: Options = ()


@part
def over_vocabulary(statistic: str) -> Distance:
    """A divergence over the whole vocabulary.

    Args:
      statistic: "kl", KL(policy ‖ teacher); "reverse_kl", KL(teacher ‖ policy); or "js".
    """
    return Distance(lambda context: getattr(context.stats, statistic), frozenset({statistic}))


def with_tail(topk_logp: Float[Array, "... k"]) -> Float[Array, "... k+1"]:
    """Log-probs of k tokens and, behind them, of all others together, `LEAST_TAIL` at least."""
    mass = jax.nn.logsumexp(topk_logp, axis=-1, keepdims=True)
    rest = jnp.log(-jnp.expm1(jnp.minimum(mass, -LEAST_TAIL)))
    return jnp.concatenate([topk_logp, rest], axis=-1)


@part
def over_likeliest(top_k: Count, alpha: Unit) -> Distance:
    """A divergence over the policy's k likeliest tokens and one class of all others.

    With s and t the policy and the teacher over these k + 1 classes and m = (1 - α) s + α t:
    KL(t ‖ s) for α = 0, KL(s ‖ t) for α = 1, else (1 - α) KL(s ‖ m) + α KL(t ‖ m). Which tokens
    are likeliest carries no gradient, s does, within m, too.

    Args:
      top_k: k.
      alpha: α, in [0, 1].
    Raises:
      ValueError: no k, or alpha outside [0, 1].
    Source: SDPO, https://github.com/lasgroup/SDPO.
    """

    def relative(one, two):
        return jnp.sum(jnp.exp(one) * (one - two), axis=-1)

    def values(context):
        own = with_tail(context.stats.topk_logp)
        teacher = with_tail(jax.lax.stop_gradient(context.stats.teacher_topk_logp))
        if alpha == 0:
            return relative(teacher, own)
        if alpha == 1:
            return relative(own, teacher)
        mixture = jnp.logaddexp(own + jnp.log1p(-alpha), teacher + jnp.log(alpha))
        return (1 - alpha) * relative(own, mixture) + alpha * relative(teacher, mixture)

    reads = frozenset({"topk_logp", "topk_ids", "teacher_topk_logp"})
    return Distance(values, reads, (("top_k", top_k),))


@part(reads={"logp"})
def at_sampled_token() -> Distance:
    """sg(log π - log π_T) · log π: the gradient of KL(policy ‖ teacher), from one token of it."""

    def values(context):
        logp = context.stats.logp
        gap = jax.lax.stop_gradient(logp - context.rollouts.teacher_logp)
        return gap * logp

    return Distance(values, frozenset({"logp", "teacher_logp"}), (), "at_sampled_token()")


@part
def distilled(distance: Distance, cap: Bound | None = None) -> Surrogate:
    """w D: the distance from a teacher, whatever the advantage.

    Args:
      distance: D.
      cap: of w = sg(min(ρ, cap)), ρ the importance ratio of the sampled token, its logarithm
        clamped to ±20, for rollouts that are old; None: w = 1.
    Raises:
      ValueError: a cap that is not positive.
    Source: SDPO, https://github.com/lasgroup/SDPO.
    """

    def prepare(signals, context):
        ratio = token_ratio(context.stats.logp, context.old_logp, signals.mask)
        return replace(signals, ratio=jax.lax.stop_gradient(ratio))

    def loss(signals, context):
        values = distance.values(context)
        if cap is None:
            return values
        ratio = clamped_token_ratio(context.stats.logp, context.old_logp, signals.mask)
        return jax.lax.stop_gradient(jnp.minimum(ratio, cap)) * values

    return Surrogate(prepare, loss, reads=distance.reads | {"logp"}, options=distance.options)
