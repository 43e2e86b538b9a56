"""A loss for rows that the policy wrote with help, as if it had written them without."""

import jax.numpy as jnp

from rlvr_jax.objectives.algebra.parts import Surrogate
from rlvr_jax.types import replace
from rlvr_jax.types.hyperparameters import Positive
from rlvr_jax.types.parts import part

__all__ = ["damped_ratio"]


@part
def damped_ratio(gamma: Positive) -> Surrogate:
    """-A f, f = π / (π_old + γ): the ratio, damped where the old policy would not have said it.

    Both probabilities are those without the help. f is at most 1 / γ and its gradient is that of
    the full ratio; `shaped_probability` is what saturates. No clip.

    Args:
      gamma: γ, positive.
    Raises:
      ValueError: gamma not positive.
    Source: RGR-GRPO, https://arxiv.org/abs/2511.12344, as readers' notes print it.
    """

    def prepare(signals, context):
        own = jnp.exp(context.stats.logp) / (jnp.exp(context.old_logp) + gamma)
        return replace(signals, ratio=own)

    def loss(signals, context):
        del context
        return -signals.advantage * signals.ratio

    return Surrogate(prepare, loss)
