"""Credit for responses that are written in windows: some end in a window, others are cut by it.

A cut response has no reward yet. The value after the cut is taken to be the one before it, so the
last token sees no surprise, and what was cut is neither rewarded nor blamed for it.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rlvr_jax.objectives.advantages.critics import Critic
from rlvr_jax.objectives.advantages.returns import (
    discounted_returns,
    generalized_advantages,
    is_last_token,
    token_rewards,
)
from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.types import replace
from rlvr_jax.types.hyperparameters import Unit
from rlvr_jax.types.parts import part

__all__ = ["critic_of_finished", "critic_targets", "extended_advantage", "extended_advantages"]


def extended_advantages(
    reward: Float[Array, "B"],
    values: Float[Array, "B T"],
    mask: Bool[Array, "B T"],
    cut: Bool[Array, "B"],
    discount: float = 1.0,
    trace_decay: float = 0.95,
) -> Float[Array, "B T"]:
    """Generalized advantages, with V after a cut equal to V before it; 0 off the mask.

    With γ = 1 the error at the last token of a cut response is exactly 0. Finished responses are
    `generalized_advantages` of their outcome. With λ = 0 the result is the errors δ.

    Args:
      reward: R, of finished responses; not read of cut ones.
      values: V, the critic's estimates when the batch was drawn.
      mask: the tokens of the window.
      cut: the responses that go on after it.
      discount, trace_decay: γ and λ.
    Source: Fan et al. 2025, https://arxiv.org/abs/2506.15050.
    """
    after_cut = jnp.where(is_last_token(mask), discount * values, 0)
    rewards = jnp.where(cut[:, None], after_cut, token_rewards(reward, mask))
    return generalized_advantages(rewards, values, mask, discount, trace_decay)


def critic_targets(
    reward: Float[Array, "B"],
    mask: Bool[Array, "B T"],
    cut: Bool[Array, "B"],
    discount: float = 1.0,
) -> tuple[Float[Array, "B T"], Bool[Array, "B T"]]:
    """What a critic is fitted to, and where: the return of each token of finished responses.

    Args:
      reward, mask, cut, discount: as in `extended_advantages`.
    Returns:
      The returns, 0 elsewhere, and the mask of the tokens that have one.
    """
    finished = mask & ~cut[:, None]
    return discounted_returns(token_rewards(reward, finished), finished, discount), finished


@part
def critic_of_finished(discount: Unit = 1.0, trunk: str = "own") -> Critic:
    """A critic that is fitted to the plain returns of finished responses, without a trust region.

    Args:
      discount: γ, in [0, 1].
      trunk: see `Critic`.
    Source: Fan et al. 2025, https://arxiv.org/abs/2506.15050.
    """

    def targets(rollouts):
        return critic_targets(rollouts.reward, rollouts.mask, rollouts.truncated, discount)

    def weigh(rollouts):
        _, finished = targets(rollouts)
        return finished.astype(rollouts.values.dtype)

    return Critic(lambda rollouts: targets(rollouts)[0], jnp.inf, trunk, weigh)


@part(reads={"values"}, writes={"advantage"})
def extended_advantage(discount: Unit = 1.0, trace_decay: Unit = 0.95) -> Transform:
    """`extended_advantages` of the outcome and a critic's values.

    `rollouts.truncated` must mark the responses that the window cut and that go on; one that ended
    at the limit of its length has its reward.

    Args:
      discount, trace_decay: γ and λ, in [0, 1].
    Reads: reward, values, truncated, mask. Writes: advantage. Metrics: none.
    Raises:
      ValueError: discount or trace_decay outside [0, 1].
    Source: Fan et al. 2025, https://arxiv.org/abs/2506.15050.
    """

    def apply(signals, context, state):
        rollouts = context.rollouts
        own = extended_advantages(
            rollouts.reward,
            rollouts.values,
            signals.mask,
            rollouts.truncated,
            discount,
            trace_decay,
        )
        return replace(signals, advantage=own), state, {}

    return apply
