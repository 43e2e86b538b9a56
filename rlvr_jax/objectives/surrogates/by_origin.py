"""Losses for batches in which another policy wrote some of the tokens."""

from collections.abc import Callable, Iterable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from rlvr_jax.objectives.algebra.parts import Surrogate
from rlvr_jax.types import Rollouts, part, replace
from rlvr_jax.types.hyperparameters import Positive

__all__ = ["GIVEN", "TEACHER", "TOOL", "by_origin", "own_words", "shaped_probability"]

TEACHER = 1
"""Record `origin` of tokens that a teacher wrote."""


TOOL = 2
"""Record `origin` of tokens that a tool or an environment wrote."""


GIVEN = 3
"""Record `origin` of tokens of a given hint or prefix, with which the response begins."""


def foreign_tokens(rollouts: Rollouts) -> Bool[Array, "B T"]:
    """Tokens of another policy: those of `off_policy` rows, or with a teacher's `origin`."""
    foreign = jnp.broadcast_to(rollouts.records["off_policy"][:, None], rollouts.mask.shape)
    return (
        foreign
        if "origin" not in rollouts.records
        else foreign | (rollouts.records["origin"] == TEACHER)
    )


def own_words(rollouts: Rollouts) -> Bool[Array, "B T"]:
    """Tokens of supervised rows that no tool wrote, for `imitate(…, where=own_words)`."""
    return rollouts.supervised_tokens & (rollouts.records["origin"] != TOOL)


@part
def by_origin(
    own: Surrogate,
    foreign: Surrogate,
    where: Callable[[Rollouts], Array] = foreign_tokens,
    reads: Iterable[str] = ("off_policy",),
) -> Surrogate:
    """One loss on the policy's tokens, another loss on those of another writer.

    Only `foreign` reads the old log-probs of foreign tokens. `own` gets the current ones there, so
    that no unused ratio overflows.

    Args:
      own: loss, ratio and trust region of the policy's tokens.
      foreign: loss, ratio and trust region of the foreign tokens.
      where: (rollouts) -> bool [B, T], the foreign tokens.
      reads: optional records of the rollouts that `where` requires.
    """

    def of_own(context):
        written = where(context.rollouts)
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
        prepare, loss, remark, own.reads | foreign.reads | {*reads}, own.options + foreign.options
    )


@part
def shaped_probability(gamma: Positive) -> Surrogate:
    """LUFFY's loss of tokens of another writer: -A f(π) with f(π) = π / (π + γ).

    The writer is assumed to be certain of its tokens.

    With a behaviour probability of 1 the importance ratio is π. Its gradient A π ∇log π is small
    for tokens that the policy finds unlikely. The gradient of f, A γ π / (π + γ)², is largest
    where π = γ. The old policy is not read.

    Args:
      gamma: probability at which f is ½ (γ).
    Source: LUFFY, https://github.com/ElliottYan/LUFFY.
    """

    def prepare(signals, context):
        probability = jnp.exp(context.stats.logp)
        return replace(signals, ratio=probability / (probability + gamma))

    def loss(signals, context):
        del context
        return -signals.advantage * signals.ratio

    return Surrogate(prepare, loss)
