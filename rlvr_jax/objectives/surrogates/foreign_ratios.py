"""Losses of tokens that were not drawn from the policy under its prompt.

A teacher's probabilities are not known, and those under another prompt are far from the policy's:
a plain importance ratio is then no use. Losses for the foreign side of `by_origin`.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rlvr_jax.objectives.algebra.parts import Context, Surrogate
from rlvr_jax.objectives.statistics.ratios import token_ratio
from rlvr_jax.objectives.statistics.scopes import Scope, scoped_quantile, within_response
from rlvr_jax.objectives.surrogates.by_origin import foreign_tokens
from rlvr_jax.types import Rollouts, replace
from rlvr_jax.types.hyperparameters import NonNegative, Positive, Unit
from rlvr_jax.types.parts import Function, part

__all__ = ["imitated", "mixture_importance", "quantile_scale", "shaped_ratio"]

Scale = Callable[[Float[Array, "B T"], Context], Float[Array, "..."]]
"""(ratio [B, T], context) -> γ > 0, in a shape that broadcasts against the ratio."""


@part
def mixture_importance() -> Surrogate:
    """-A ρ, ρ = 2 π / (π_old + ω), ω = (π_old + 1) / 2: for tokens of an unknown writer.

    The writer is taken for a mixture of the old policy and of one that was sure of every token.
    ρ is below 4, so nothing is clipped; π_old and ω are constants.

    Source: RL-PLUS, https://github.com/YihongDong/RL-PLUS.
    """

    def prepare(signals, context):
        old = jnp.exp(context.old_logp)
        return replace(signals, ratio=2 * jnp.exp(context.stats.logp) / (old + (old + 1) / 2))

    return Surrogate(prepare, unclipped_loss)


@part
def quantile_scale(
    fraction: Unit,
    least: Positive,
    scope: Scope = within_response,
    where: Callable[[Rollouts], Bool[Array, "B T"]] = foreign_tokens,
) -> Function:
    """γ = max(quantile of the ratios of foreign tokens, least), without gradient.

    Args:
      fraction: of the quantile, in [0, 1].
      least: positive.
      scope: whose tokens are compared: those of each response, or of the batch.
      where: which tokens are foreign.
    Raises:
      ValueError: a fraction outside [0, 1], or least not positive.
    """

    def scale(ratio, context):
        rollouts = context.rollouts
        there = rollouts.mask & where(rollouts)
        found = scoped_quantile(ratio, there, scope(rollouts), fraction)
        return jax.lax.stop_gradient(jnp.maximum(found, least))

    return scale


@part
def shaped_ratio(scale: Scale) -> Surrogate:
    """-A s, s = ρ / (ρ + γ): for tokens whose old log-probs are those of another prompt.

    s is below 1 and nothing is clipped; its gradient ρ γ / (ρ + γ)² is largest where ρ = γ, so
    tokens that the prompt makes much less likely still teach something. Gradient flows through ρ
    above and below.

    Args:
      scale: γ, such as `quantile_scale(0.9, 1e-4)`.
    Source: Guide-GRPO, https://github.com/vaskar-open-source-research/guide_rl.
    """

    def prepare(signals, context):
        ratio = token_ratio(context.stats.logp, context.old_logp, signals.mask)
        return replace(signals, ratio=ratio / (ratio + scale(ratio, context)))

    return Surrogate(prepare, unclipped_loss)


@part
def imitated(weight: NonNegative) -> Surrogate:
    """-w logp, whatever the advantage: for tokens that are to be learned as they stand.

    Args:
      weight: w, at least 0.
    Raises:
      ValueError: a negative weight.
    """

    def prepare(signals, context):
        del context
        return signals

    def loss(signals, context):
        del signals
        return -weight * context.stats.logp

    return Surrogate(prepare, loss)


def unclipped_loss(signals, context):
    del context
    return -signals.advantage * signals.ratio
