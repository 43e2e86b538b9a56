"""Token statistics as one would write them on a blackboard: all logits at once, autodiff backward.

It holds [N, V] arrays and is the yardstick of the other forms, so it shares no formula with them.
"""

from collections.abc import Collection

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.types import TokenStats

__all__ = ["statistics"]


def statistics(
    hidden: Float[Array, "N D"],
    unembedding: Float[Array, "V D"],
    bias: Float[Array, "V"] | None,
    targets: Int[Array, "N"],
    mask: Bool[Array, "N"] | None,
    temperature: Float[Array, "N"] | None,
    *,
    needs: Collection[str],
    softcap: float | None,
    dtype,
) -> TokenStats:
    """Computes the statistics in `needs` from a full array of logits in `dtype`.

    Arguments are those of `token_stats` after its checks; a temperature of None is 1.
    """
    del mask  # the caller replaces masked tokens; there is no work to skip here
    logits = hidden.astype(dtype) @ unembedding.astype(dtype).T
    if bias is not None:
        logits = logits + bias.astype(dtype)[None, :]
    if softcap is not None:
        removed = logits == -jnp.inf
        logits = jnp.where(removed, -jnp.inf, softcap * jnp.tanh(logits / softcap))
    if temperature is not None:
        logits = logits / temperature[:, None]
    logp = jax.nn.log_softmax(logits, axis=-1)
    p = jnp.exp(logp)
    finite_logp = jnp.where(p > 0, logp, 0)  # lim p log p = 0, also in the gradient
    vocabulary_size = unembedding.shape[0]

    def target_logp():
        inside = (targets >= 0) & (targets < vocabulary_size)
        column = jnp.where(inside, targets, 0)[:, None]
        picked = jnp.take_along_axis(logp, column, axis=-1)[:, 0]
        return jnp.where(inside, jnp.where(picked > 0, 0, picked), jnp.nan)

    def entropy():
        raw = -jnp.sum(p * finite_logp, axis=-1)
        highest = jnp.log(jnp.asarray(vocabulary_size, dtype))
        # The bounds undo rounding; they must not cut the gradient.
        return raw + jax.lax.stop_gradient(jnp.clip(raw, 0, highest) - raw)

    formulas = {
        "logp": target_logp,
        "logsumexp": lambda: jax.nn.logsumexp(logits, axis=-1),
        "entropy": entropy,
        "p_squared": lambda: jnp.sum(p * p, axis=-1),
        "p_squared_logp": lambda: jnp.sum(p * p * finite_logp, axis=-1),
    }
    return TokenStats(**{need: formulas[need]() for need in needs})
