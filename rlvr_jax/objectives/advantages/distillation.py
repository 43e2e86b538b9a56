"""Advantages from a teacher's log-probs of the policy's own tokens."""

import jax
import jax.numpy as jnp

from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.types import replace
from rlvr_jax.types.hyperparameters import Positive
from rlvr_jax.types.parts import part

__all__ = ["teacher_log_ratio"]


@part(reads={"logp", "teacher_logp"}, writes={"advantage"})
def teacher_log_ratio(frozen: bool = False, bound: Positive = 20.0) -> Transform:
    """A_t = log π_T(a_t) - log π(a_t): minus the reverse KL at the token, from one sample of it.

    Each token has its own, nothing is passed on from later ones. Its mean is below 0 until the
    policy is the teacher, and it is -∞ where the teacher finds a token impossible.

    Args:
      frozen: π is the policy that sampled, as a clipped ratio wants it; else the current one, with
        which -A logp has the gradient of the divergence, on-policy alone.
      bound: of |A_t|, nats.
    Reads: teacher_logp, logp (or old_logp if frozen). Writes: advantage. Metrics: teacher_log_ratio
      (its mean).
    Raises:
      ValueError: a bound that is not positive.
    Source: VLA-OPD and its public re-implementation (the link stands in the method's card).
    """

    def apply(signals, context, state):
        own = context.old_logp if frozen else jax.lax.stop_gradient(context.stats.logp)
        ratio = jnp.clip(context.rollouts.teacher_logp - own, -bound, bound)
        advantage = jnp.where(signals.mask, ratio, 0)
        told = {"teacher_log_ratio": masked_mean(advantage, signals.mask)}
        return replace(signals, advantage=advantage), state, told

    return apply
