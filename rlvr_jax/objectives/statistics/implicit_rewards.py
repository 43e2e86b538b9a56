"""What a language model's log-ratio says about single tokens and steps of a response.

If r(y) = β log π(y) / π_ref(y) is the reward of whole responses, then its partial sums are values:
q_t = β Σ_{i≤t} log-ratio = β log E_{π_ref}[exp(r / β) | y_≤t]. And the logits of a policy that
solves KL-regularized RL are values, up to one constant per state: Q = β z, V = β log Σ exp z.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rlvr_jax.objectives.statistics.steps import Steps


def token_log_ratio_reward(
    logp: Float[Array, "B T"],
    reference_logp: Float[Array, "B T"],
    mask: Bool[Array, "B T"],
    scale: float,
) -> Float[Array, "B T"]:
    """β (logp - reference_logp), 0 off the mask.

    Args:
      scale: β.
    """
    return jnp.where(mask, scale * (logp - reference_logp), 0)


def step_ends(steps: Steps) -> Bool[Array, "B T"]:
    """The last token of each step."""
    position = jnp.arange(steps.member.shape[1], dtype=jnp.int32)[None]
    rows, width = steps.member.shape
    flat = jnp.arange(rows, dtype=jnp.int32)[:, None] * width + steps.index
    own = jnp.where(steps.member, position, -1)
    last = jax.ops.segment_max(own.ravel(), flat.ravel(), num_segments=rows * width)
    return steps.member & (position == last.reshape(rows, width)[row_of(rows), steps.index])


def row_of(rows):
    return jnp.arange(rows, dtype=jnp.int32)[:, None]
