"""How many rollouts of a prompt start from the prompt, and how many as branches of others."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.objectives.statistics.masked import masked_mean

__all__ = ["num_from_prompt", "turn_entropies"]


def turn_entropies(
    entropy: Float[Array, "B T"],
    mask: Bool[Array, "B T"],
    turn: Int[Array, "B T"],
    vocabulary_size: int,
) -> tuple[Float[Array, "B"], Float[Array, "B"]]:
    """Mean entropy of the first turn and of all later ones, as shares of the largest, log V.

    A stand-in for the authors' sums of the ten largest entropies of at most 50 tokens, and 20 after
    a tool, with which `num_from_prompt` moves over nearly its whole range: means move it little.

    Args:
      entropy: of the policy at the token, nats.
      mask: the tokens that count.
      turn: which turn a token belongs to, from 0.
      vocabulary_size: V.
    Returns:
      H_root and H_tool, [B]; 0 for a row without such tokens.
    """
    relative = entropy / jnp.log(jnp.asarray(vocabulary_size, entropy.dtype))
    first = masked_mean(relative, mask & (turn == 0), axis=1)
    return first, masked_mean(relative, mask & (turn > 0), axis=1)


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
