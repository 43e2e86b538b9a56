"""Batches in which some tokens are the policy's and some another's: a loss for either kind."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from rlvr_jax.objectives.algebra.parts import Surrogate, describe
from rlvr_jax.objectives.arguments import check_positive
from rlvr_jax.types import Rollouts, replace

__all__ = ["TEACHER", "by_origin", "foreign_tokens", "shaped_probability"]

TEACHER = 1
"""`Rollouts.origin` of a token that a teacher wrote."""


def foreign_tokens(rollouts: Rollouts) -> Bool[Array, "B T"]:
    """Tokens that another policy wrote: of rows that are `off_policy`, or of a teacher's origin."""
    foreign = jnp.broadcast_to(rollouts.off_policy[:, None], rollouts.mask.shape)
    return foreign if rollouts.origin is None else foreign | (rollouts.origin == TEACHER)


def by_origin(own: Surrogate, foreign: Surrogate) -> Surrogate:
    """One loss on the policy's own tokens, another one on those that somebody else wrote.

    The old log-probs of foreign tokens are read by `foreign` alone: `own` finds the current ones
    there, so that no ratio overflows beside the one that counts.

    Args:
      own, foreign: surrogates; the ratio and the trust region of a token are those of its own one.
    """

    def of_own(context):
        written = foreign_tokens(context.rollouts)
        now = jax.lax.stop_gradient(context.stats.logp)
        return written, replace(context, old_logp=jnp.where(written, now, context.old_logp))

    def prepare(signals, context):
        written, owned = of_own(context)
        one, other = own.prepare(signals, owned), foreign.prepare(signals, context)
        chosen = {
            name: jnp.where(written, getattr(other, name), getattr(one, name))
            for name in ("ratio", "clip_low", "clip_high")
        }
        return replace(one, **chosen)

    def loss(signals, context):
        written, owned = of_own(context)
        return jnp.where(written, foreign.loss(signals, context), own.loss(signals, owned))

    def remark(plan):
        return own.remark(plan) or foreign.remark(plan)

    return Surrogate(
        prepare,
        loss,
        describe("by_origin", own=own.label, foreign=foreign.label),
        remark,
        own.needs | foreign.needs | {"off_policy"},
        own.options + foreign.options,
    )


def shaped_probability(gamma: float) -> Surrogate:
    """-A f(π), f(π) = π / (π + γ): for tokens whose writer is taken to have been sure of them.

    With a behaviour probability of 1 the importance ratio is π itself. Its gradient is A π ∇log π,
    which passes over the tokens that the policy finds unlikely; that of f is A γ π / (π + γ)²,
    largest where π = γ. No clip; nothing is read of the old policy.

    Args:
      gamma: γ, positive.
    Raises:
      ValueError: gamma not positive.
    Source: LUFFY, https://github.com/ElliottYan/LUFFY.
    """
    check_positive("shaped_probability", gamma=gamma)

    def prepare(signals, context):
        probability = jnp.exp(context.stats.logp)
        return replace(signals, ratio=probability / (probability + gamma))

    def loss(signals, context):
        del context
        return -signals.advantage * signals.ratio

    return Surrogate(prepare, loss, describe("shaped_probability", gamma=float(gamma)))
