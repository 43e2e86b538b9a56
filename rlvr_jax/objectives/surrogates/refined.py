"""A loss for rows that the policy wrote with help, as if it had written them without."""

import jax.numpy as jnp

from rlvr_jax.objectives.algebra.parts import Surrogate, describe
from rlvr_jax.objectives.arguments import check_positive
from rlvr_jax.types import replace

__all__ = ["damped_ratio"]


def damped_ratio(gamma: float) -> Surrogate:
    """-A f, f = π / (π_old + γ): the ratio, damped where the old policy would not have said it.

    Both probabilities are those without the help. f is at most 1 / γ and its gradient is that of
    the full ratio; `shaped_probability` is what saturates. No clip.

    Args:
      gamma: γ, positive.
    Raises:
      ValueError: gamma not positive.
    Source: RGR-GRPO, https://arxiv.org/abs/2511.12344, as readers' notes print it.
    """
    check_positive("damped_ratio", gamma=gamma)

    def prepare(signals, context):
        own = jnp.exp(context.stats.logp) / (jnp.exp(context.old_logp) + gamma)
        return replace(signals, ratio=own)

    def loss(signals, context):
        del context
        return -signals.advantage * signals.ratio

    return Surrogate(prepare, loss, describe("damped_ratio", gamma=float(gamma)))
