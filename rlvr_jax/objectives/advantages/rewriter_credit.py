"""Credit of single tokens from a model that rewrites wrong responses."""

import jax.numpy as jnp

from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.regularizers.preferences import outcome_is_right
from rlvr_jax.objectives.rewards.edits import rewriter_reward
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.types import replace
from rlvr_jax.types.hyperparameters import NonNegative
from rlvr_jax.types.parts import part

__all__ = ["rewriter_credit"]


@part(reads={"teacher_logp"}, writes={"advantage", "mask"})
def rewriter_credit(high: NonNegative = 0.5, low: NonNegative = 0.1) -> Transform:
    """A_t = `rewriter_reward` of the teacher's probability; tokens of reward 0 leave the mask.

    So an average is over key tokens only.

    Args:
      high, low: the largest reward of a right response's token, and price of a wrong one's.
    Reads: teacher_logp, outcome. Writes: advantage, mask. Metrics: key_tokens_share.
    Raises:
      ValueError: a negative number.
    Source: RLMEC, https://github.com/RUCAIBox/RLMEC.
    """

    def apply(signals, context, state):
        rollouts = context.rollouts
        probability = jnp.exp(rollouts.teacher_logp)
        reward = rewriter_reward(probability, outcome_is_right(rollouts.outcome), high, low)
        key = signals.mask & (reward != 0)
        metrics = {"key_tokens_share": masked_mean(key, signals.mask)}
        signals = replace(signals, advantage=jnp.where(key, reward, 0), mask=key)
        return signals, state, metrics

    return apply
