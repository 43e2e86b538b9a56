"""Advantages from how sure the old policy was, in the place of a reward."""

import jax

from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.regularizers.preferences import outcome_is_right
from rlvr_jax.objectives.rewards.certainty import Certainty
from rlvr_jax.objectives.statistics.groups import (
    group_deviation,
    group_has_tokens,
    group_std,
    has_tokens,
)
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.types import replace
from rlvr_jax.types.hyperparameters import Positive
from rlvr_jax.types.parts import part

__all__ = ["certainty_normalized"]


@part(writes={"advantage"})
def certainty_normalized(certainty: Certainty, epsilon: Positive = 1e-6) -> Transform:
    """A_i = (c_i - mean) / (std + ε) over the rollouts of a prompt; std with n - 1.

    Rows without tokens have no certainty: they are not compared.

    Args:
      certainty: c, of `rlvr_jax.objectives.rewards.certainty`.
      epsilon: ε, added to the deviation.
    Reads: group, mask, what the certainty reads. Writes: advantage. Metrics: certainty, its mean
      over the rows with tokens, and certainty/right and /wrong.
    Raises:
      ValueError: epsilon not positive.
    """

    def apply(signals, context, state):
        rollouts, mask = context.rollouts, signals.mask
        own = jax.lax.stop_gradient(certainty.of(rollouts, context.old_logp, mask))
        group, written = rollouts.group, has_tokens(mask)
        spread = group_std(own, group, where=written)
        advantage = group_deviation(own, group, where=written) / (spread + epsilon)
        counted = written & group_has_tokens(rollouts.mask, group)
        right = outcome_is_right(rollouts.outcome)
        metrics = {
            "certainty": masked_mean(own, counted),
            "certainty/right": masked_mean(own, counted & right),
            "certainty/wrong": masked_mean(own, counted & ~right),
        }
        advantage = jax.numpy.where(mask, advantage[:, None], 0)
        return replace(signals, advantage=advantage), state, metrics

    def remark(plan):
        if plan.group_size == 1:
            return "is 0 everywhere: a group of one has no baseline."
        return None

    options = (("top_k", certainty.top_k),) if certainty.top_k else ()
    return Transform(
        apply,
        reads=certainty.reads | {"batch_statistics"},
        remark=remark,
        options=options,
        once=not certainty.top_k,
    )
