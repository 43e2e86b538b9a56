"""Token statistics of rollouts under a policy: the model's half of an update."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from rlvr_jax.kernels.token_stats import token_stats
from rlvr_jax.policy.model import Model, Params
from rlvr_jax.types import Rollouts, TokenStats, replace

__all__ = ["score", "sequences"]


def sequences(rollouts: Rollouts) -> Int[Array, "B S"]:
    """Prompt and response of each row without a gap, S = P + T; what lies behind is arbitrary."""
    width, budget = rollouts.prompt_tokens.shape[1], rollouts.tokens.shape[1]
    index = jnp.arange(width + budget, dtype=jnp.int32)[None]
    start = rollouts.prompt_length[:, None].astype(jnp.int32)
    padded = jnp.pad(rollouts.prompt_tokens, ((0, 0), (0, budget)))
    response = jnp.take_along_axis(rollouts.tokens, jnp.clip(index - start, 0, budget - 1), axis=1)
    return jnp.where(index < start, padded, response)


def score(
    model: Model,
    params: Params,
    rollouts: Rollouts,
    needs: Collection[str] = ("logp",),
    options: Iterable[tuple[str, float]] = (),
) -> TokenStats:
    """Statistics of every response token, [B, T], at the temperature it was drawn with.

    No array over tokens and vocabulary is made. Differentiable in `params`; 0 off the mask.

    Args:
      needs: names of fields of `TokenStats`: statistics of `token_stats`, and "hidden", the state
        that the token was predicted from.
      options: further arguments of `token_stats`, name and value, e.g. (("top_k", 8),).
    """
    rows, budget = rollouts.tokens.shape
    hidden = model.hidden(params, sequences(rollouts)[:, :-1])
    # The state that predicts response token t is that of the token before it.
    offset = jnp.arange(-1, budget - 1, dtype=jnp.int32)[None]
    before = rollouts.prompt_length[:, None].astype(jnp.int32) + offset
    before = jnp.minimum(before, hidden.shape[1] - 1)
    hidden = jnp.take_along_axis(hidden, before[:, :, None], axis=1)
    stats = token_stats(
        hidden.reshape(rows * budget, -1),
        model.unembedding(params),
        rollouts.tokens.reshape(-1),
        needs=set(needs) - {"hidden"},
        mask=rollouts.mask.reshape(-1),
        temperature=rollouts.temperature.reshape(-1),
        softcap=model.config.logit_softcap,
        mesh=model.mesh,
        **dict(options),
    )
    stats = jax.tree.map(lambda field: field.reshape(rows, budget, *field.shape[1:]), stats)
    if "hidden" in needs:
        stats = replace(stats, hidden=jnp.where(rollouts.mask[:, :, None], hidden, 0))
    return stats
