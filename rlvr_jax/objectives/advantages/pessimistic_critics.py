"""Several critics per rollout, joined to one cautious estimate, and the loss that fits them."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.objectives.advantages.group_relative import rollout_advantage
from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.arguments import check_positive
from rlvr_jax.objectives.statistics.groups import batch_mean, batch_std, group_has_tokens
from rlvr_jax.types.hyperparameters import Positive
from rlvr_jax.types.parts import part

__all__ = ["huber", "huber_value_loss", "pessimistic_advantage", "soft_min"]


def soft_min(values: Float[Array, "... K"], temperature: float) -> Float[Array, "..."]:
    """-α (logsumexp_k(-v_k / α) - log K), between the smallest and the mean of the K values.

    Args:
      values: the critics' estimates along the last axis.
      temperature: α, positive; 0 would be the minimum, infinity the mean.
    Source: https://github.com/ryyzn9/SAFE.
    """
    pooled = jax.nn.logsumexp(-values / temperature, axis=-1)
    return -temperature * (pooled - jnp.log(jnp.asarray(values.shape[-1], values.dtype)))


@part
def pessimistic_advantage(temperature: Positive = 0.3, epsilon: Positive = 1e-8) -> Transform:
    """A_i = R_i - soft minimum of the row's critics, standardised over the rows of the batch.

    A' = (A - mean) / (std + ε), std with n - 1. The baseline is a critic's and not the group's: in
    groups of equal rewards the advantages are not 0, and groups of one are trained on.

    Args:
      temperature: α of the soft minimum, positive.
      epsilon: ε, added to the standard deviation.
    Reads: reward, critic_values. Writes: advantage. Metrics: none.
    Raises:
      ValueError: temperature or epsilon not positive.
    Source: https://github.com/ryyzn9/SAFE.
    """

    def advantage(rollouts):
        excess = rollouts.reward - soft_min(rollouts.critic_values, temperature)
        group = rollouts.group
        counted = group_has_tokens(rollouts.mask, group)
        centered = excess - batch_mean(excess, group, counted)
        return centered / (batch_std(excess, group, counted) + epsilon)

    return rollout_advantage(advantage, reads={"critic_values"})


def huber(values: Float[Array, "..."], width: float) -> Float[Array, "..."]:
    """x² / 2 for |x| ≤ δ, else δ (|x| - δ / 2).

    Args:
      width: δ, positive.
    """
    size = jnp.abs(values)
    return jnp.where(size <= width, values**2 / 2, width * (size - width / 2))


def huber_value_loss(
    values: Float[Array, "B"],
    old_values: Float[Array, "B"],
    reward: Float[Array, "B"],
    clip: float = 0.2,
    width: float = 0.5,
) -> Float[Array, "B"]:
    """½ (h(V - R) + h(V_old + clip(V - V_old, ±ε) - R)) per rollout: a sum, not a maximum.

    Args:
      values: V, of the critic that is fitted.
      old_values: V_old, of the same critic when the batch was drawn.
      reward: R.
      clip: ε, half-width of the region around V_old.
      width: δ of the Huber function h.
    Raises:
      ValueError: clip or width not positive.
    Source: https://github.com/ryyzn9/SAFE.
    """
    check_positive("huber_value_loss", clip=clip, width=width)
    near = old_values + jnp.clip(values - old_values, -clip, clip)
    return (huber(values - reward, width) + huber(near - reward, width)) / 2
