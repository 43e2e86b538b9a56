"""Experts on one policy that differ by their prompts: the best one's right answers teach the worst.

An expert is a cell: `Rollouts.cell` says which one a row is of.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.statistics.groups import group_max, group_mean
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.types import replace
from rlvr_jax.types.hyperparameters import NonNegative
from rlvr_jax.types.parts import part

__all__ = ["Teaching", "teach_the_worst", "teaching_rows"]


class Teaching(NamedTuple):
    """Who teaches whom, row by row.

    Fields:
      best, worst: int [B], of the group of the row, the experts of highest and lowest mean reward;
        of equal ones that of the lowest number.
      rows: bool [B], right rows of the best, where best and worst differ.
    """

    best: Int[Array, "B"]
    worst: Int[Array, "B"]
    rows: Bool[Array, "B"]


def teaching_rows(
    reward: Float[Array, "B"],
    outcome: Float[Array, "B"],
    group: Int[Array, "B"],
    cell: Int[Array, "B"],
) -> Teaching:
    """Who teaches whom; see `Teaching`. A row is right above an outcome of ½."""
    span = jnp.max(cell) - jnp.min(cell) + 1
    segment = jnp.searchsorted(jnp.sort(group), group).astype(cell.dtype)
    mean = group_mean(reward, segment * span + (cell - jnp.min(cell)))

    def first_of_highest(values):
        there = values == group_max(values, group)
        lowest = group_max(-cell.astype(reward.dtype), group, where=there)
        return (-lowest).astype(cell.dtype)

    best, worst = first_of_highest(mean), first_of_highest(-mean)
    return Teaching(best, worst, (outcome > 0.5) & (cell == best) & (best != worst))


@part(writes={"term"})
def teach_the_worst(coefficient: NonNegative) -> Transform:
    """Makes right answers of the best expert of a group likelier behind the prompt of the worst.

    term + c · mean over their tokens of (old_logp - logp'), logp' after the row's second prompt:
    an estimate of KL(π(·|best) ‖ π(·|worst)), whose gradient is that of imitation.

    Args:
      coefficient: c, at least 0.
    Reads: old_logp, second_prompt_logp, reward, outcome, group, cell. Writes: term.
    Metrics: mutual_divergence (the mean), taught_tokens (their number).
    Raises:
      ValueError: a negative coefficient.
    Source: MEML-GRPO (the link stands in the method's card).
    """

    def apply(signals, context, state):
        rollouts = context.rollouts
        teaching = teaching_rows(rollouts.reward, rollouts.outcome, rollouts.group, rollouts.cell)
        taught = signals.mask & teaching.rows[:, None]
        divergence = context.old_logp - context.stats.second_prompt_logp
        mean = masked_mean(divergence, taught)
        told = {
            "mutual_divergence": mean,
            "taught_tokens": jnp.sum(taught).astype(mean.dtype),
        }
        return replace(signals, term=signals.term + coefficient * mean), state, told

    reads = {"logp", "second_prompt_logp", "cell", "batch_statistics"}
    return Transform(apply, reads=reads)
