"""Credit of answers that were written in several rows, each with a context of its own."""

import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.objectives.advantages.group_relative import group_of_one_remark, rollout_advantage
from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.statistics.groups import group_deviation, group_std, has_tokens
from rlvr_jax.objectives.statistics.masked import masked_count
from rlvr_jax.objectives.statistics.traces import (
    last_of_trace,
    of_last_row,
    trace_ids,
    trace_tokens,
)
from rlvr_jax.types import replace
from rlvr_jax.types.hyperparameters import Positive
from rlvr_jax.types.parts import part

__all__ = ["rows_per_trace", "trace_normalized", "weigh_by_trace"]


@part
def trace_normalized(epsilon: Positive = 1e-6) -> Transform:
    """A = (R - mean) / (std + ε) over the answers to a prompt, each counted once; std with n - 1.

    The reward of an answer is that of its last row; all its rows get the same advantage. Of answers
    in one row each it is `group_normalized`.

    Args:
      epsilon: ε, added to the standard deviation, outside its root.
    Reads: reward, group, trace. Writes: advantage. Metrics: none.
    Raises:
      ValueError: epsilon not positive.
    Source: Aghajohari et al. 2025, https://arxiv.org/abs/2510.06557.
    """

    def advantage(rollouts):
        ids = trace_ids(rollouts.trace, rollouts.rollout_id)
        last = last_of_trace(ids, rollouts.rollout_id)
        # Every row of a group is given its statistic; the last row of each answer counts in it.
        reward = of_last_row(rollouts.reward, ids, rollouts.rollout_id)
        deviation = group_deviation(reward, rollouts.group, where=last)
        return deviation / (group_std(reward, rollouts.group, where=last) + epsilon)

    return rollout_advantage(advantage, remark=group_of_one_remark)


def rows_per_trace(
    mask: Bool[Array, "B T"], ids: Int[Array, "B"], rollout_id: Int[Array, "B"], dtype: DTypeLike
) -> Float[Array, ""]:
    """Rows by traces, those without tokens left out; 0 of nothing.

    Args:
      ids: of `trace_ids`.
    """
    traces = masked_count(last_of_trace(ids, rollout_id) & (trace_tokens(mask, ids) > 0))
    rows = masked_count(has_tokens(mask))
    return rows.astype(dtype) / jnp.maximum(traces, 1).astype(dtype)


@part(writes={"weight"}, once=True)
def weigh_by_trace() -> Transform:
    """Lets every answer count the same, in however many rows it was written.

    weight' = weight · (rows / traces) / n, n the tokens of the trace, for an aggregation by
    `rollout_mean_token_sum`: the loss is then the mean over the answers of the batch of the mean
    over their tokens. Of answers in one row each it is `rollout_mean_token_mean`.

    Reads: mask, trace. Writes: weight. Metrics: rows_per_trace.
    Source: Aghajohari et al. 2025, https://arxiv.org/abs/2510.06557.
    """

    def apply(signals, context, state):
        rollouts, dtype = context.rollouts, signals.weight.dtype
        ids = trace_ids(rollouts.trace, rollouts.rollout_id)
        share = rows_per_trace(signals.mask, ids, rollouts.rollout_id, dtype)
        tokens = jnp.maximum(trace_tokens(signals.mask, ids), 1).astype(dtype)
        weight = signals.weight * (share / tokens)[:, None]
        return replace(signals, weight=weight), state, {"rows_per_trace": share}

    return apply
