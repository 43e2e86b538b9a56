"""Rows that a teacher can say something about, because another row of their group is right."""

import jax.numpy as jnp
from jaxtyping import Array, Bool

from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.statistics.groups import group_sum
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.types import Rollouts, replace
from rlvr_jax.types.hyperparameters import Finite, NonNegative
from rlvr_jax.types.parts import part

__all__ = ["drop_untaught", "has_right_sibling", "taught_failures", "weigh_certain_teacher"]


def has_right_sibling(rollouts: Rollouts, success: float = 0.5) -> Bool[Array, "B"]:
    """Rows of whose group another row has an outcome of at least `success`."""
    right = (rollouts.outcome >= success).astype(jnp.int32)
    return group_sum(right, rollouts.group) > right


def taught_failures(rollouts: Rollouts, success: float = 0.5) -> Bool[Array, "B T"]:
    """Tokens of rows that failed beside a row that did not."""
    route = (rollouts.outcome < success) & has_right_sibling(rollouts, success)
    return jnp.broadcast_to(route[:, None], rollouts.mask.shape)


@part(writes={"mask"})
def drop_untaught(success: Finite = 0.5) -> Transform:
    """Takes rows out of the loss and its denominators that no other row of their group could teach.

    Args:
      success: outcome from which on a row is right.
    Reads: outcome, group. Writes: mask. Metrics: taught_share (of the tokens).
    Raises:
      ValueError: success not finite.
    Source: SDPO, https://github.com/lasgroup/SDPO.
    """

    def apply(signals, context, state):
        taught = has_right_sibling(context.rollouts, success)[:, None]
        everywhere = jnp.broadcast_to(taught, signals.mask.shape)
        told = {"taught_share": masked_mean(everywhere, signals.mask)}
        return replace(signals, mask=signals.mask & taught), state, told

    return apply


@part(reads={"teacher_entropy", "batch_statistics"}, writes={"weight"})
def weigh_certain_teacher(beta: NonNegative, success: float = 0.5) -> Transform:
    """Weighs the tokens of taught failures by exp(-β H), H the teacher's entropy, to mean 1.

    Args:
      beta: β, at least 0.
      success: as of `drop_untaught`.
    Reads: teacher_entropy, outcome, group. Writes: weight, of those tokens. Metrics: taught_share
      (of the tokens), teacher_entropy (mean over those tokens).
    Raises:
      ValueError: a negative beta.
    Source: SRPO (the link stands in the method's card).
    """

    def apply(signals, context, state):
        taught = signals.mask & taught_failures(context.rollouts, success)
        entropy = context.stats.teacher_entropy
        raw = jnp.where(taught, jnp.exp(-beta * entropy), 0)
        mean = masked_mean(raw, taught)
        scaled = raw / jnp.where(mean > 0, mean, 1)
        weight = signals.weight * jnp.where(taught, scaled, 1)
        told = {
            "taught_share": masked_mean(taught, signals.mask),
            "teacher_entropy": masked_mean(entropy, taught),
        }
        return replace(signals, weight=weight), state, told

    return apply
