"""How many rollouts of a prompt start from the prompt, and how many as branches of others."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int


def num_from_prompt(
    root: Float[Array, "..."],
    tool: Float[Array, "..."],
    total: int,
    sensitivity: float,
    tolerance: float = 0.0,
) -> Int[Array, "..."]:
    """m = min(⌊k σ(β (H_root - H_tool))⌋ + 1, k) of k rollouts; the others are branches.

    The more uncertain the policy is at the start than after a tool has answered, the more rollouts
    start anew; at equal entropies half of them do, plus one.

    Args:
      root, tool: H_root and H_tool.
      total: k, at least 1.
      sensitivity: β.
      tolerance: what a product may lack of a whole number and be one, where rounding decides.
    Source: Dong et al. 2025, https://arxiv.org/abs/2510.14545; the paper has no + 1.
    """
    share = total * jax.nn.sigmoid(sensitivity * (root - tool))
    return jnp.clip(jnp.floor(share + tolerance).astype(jnp.int32) + 1, 1, total)
