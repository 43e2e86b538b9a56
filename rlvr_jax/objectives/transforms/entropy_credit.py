"""Advantages that entropy changes or makes."""

import jax
import jax.numpy as jnp

from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.statistics.groups import group_all_equal, has_tokens
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.objectives.statistics.scopes import scoped_max, within_response
from rlvr_jax.types import replace
from rlvr_jax.types.hyperparameters import Bound, Finite, NonNegative
from rlvr_jax.types.parts import part

__all__ = ["charge_mean_entropy", "credit_unanimous_groups"]


@part(reads={"entropy"}, writes={"advantage"})
def charge_mean_entropy(threshold: Bound, coefficient: Finite) -> Transform:
    """Charges rollouts for their entropy, and drops the most uncertain.

    With H̄ the mean entropy of a rollout's tokens under the current policy: A' = A - c H̄, and
    A' = 0 if H̄ > threshold. Rollouts of advantage 0 are charged as well.

    Args:
      threshold: nats, positive; inf drops none.
      coefficient: c.
    Reads: advantage, entropy, mask. Writes: advantage. Metrics: dropped_rollouts_share (of those
      with tokens).
    Raises:
      ValueError: threshold not positive, or coefficient not finite.
    Source: GTPO, https://github.com/winstonsmith1897/GTPO.
    """

    def apply(signals, context, state):
        mask, entropy = signals.mask, jax.lax.stop_gradient(context.stats.entropy)
        mean = masked_mean(entropy, mask, axis=1)[:, None]
        charged = signals.advantage - coefficient * mean
        advantage = jnp.where(mask & (mean <= threshold), charged, 0)
        dropped = masked_mean(mean[:, 0] > threshold, has_tokens(mask))
        metrics = {"dropped_rollouts_share": dropped.astype(mean.dtype)}
        return replace(signals, advantage=advantage), state, metrics

    return apply


@part(reads={"sampled_entropy"}, writes={"advantage"})
def credit_unanimous_groups(scale: NonNegative) -> Transform:
    """Gives groups of equal rewards an advantage by the entropy of their tokens.

    With H the entropy when the token was sampled, in groups whose rewards are all equal:

        A'_t = +α H_t                 if the reward is above 1/2
        A'_t = -α (max_k H_k - H_t)   else, the maximum over the tokens of the response

    A right answer is reinforced at its uncertain tokens, a wrong one pushed down at its certain
    ones. Other groups keep their advantage. A group of one counts as one of equal rewards.

    Args:
      scale: α, at least 0.
    Reads: advantage, reward, group, rollouts.entropy, mask. Writes: advantage.
    Metrics: unanimous_groups_share (of the rollouts with tokens).
    Raises:
      ValueError: a negative scale.
    Source: RL-ZVP, "No Prompt Left Behind"; that 1/2 divides right from wrong is our choice.
    """

    def apply(signals, context, state):
        mask, rollouts = signals.mask, context.rollouts
        equal = group_all_equal(rollouts.reward, rollouts.group)[:, None]
        right = (rollouts.reward > 0.5)[:, None]
        entropy = rollouts.entropy
        below = entropy - scoped_max(entropy, mask, within_response(rollouts))
        credit = scale * jnp.where(right, entropy, below)
        advantage = jnp.where(mask & equal, credit, signals.advantage)
        share = masked_mean(equal[:, 0], has_tokens(mask)).astype(entropy.dtype)
        metrics = {"unanimous_groups_share": share}
        return replace(signals, advantage=advantage), state, metrics

    return apply
