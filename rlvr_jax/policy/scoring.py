"""Token statistics of rollouts under a policy: the model's half of an update."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.kernels.token_stats import token_stats
from rlvr_jax.policy.model import Model, Params
from rlvr_jax.types import Rollouts, TokenStats, replace

__all__ = ["hidden_states", "score"]


def score(
    model: Model,
    params: Params,
    rollouts: Rollouts,
    needs: Collection[str] = ("logp",),
    options: Iterable[tuple[str, float]] = (),
    shared: int = 1,
    opening: int = 0,
) -> TokenStats:
    """Statistics of every response token, [B, T], at the temperature it was drawn with.

    No array over tokens and vocabulary is made. Differentiable in `params`; 0 off the mask.

    Args:
      needs: names of fields of `TokenStats`: statistics of `token_stats`, and "hidden", the state
        that the token was predicted from.
      options: further arguments of `token_stats`, name and value, e.g. (("top_k", 8),).
      shared: of each so many rows that follow one another the prompt is computed once; they must
        have the same one, which is not checked.
      opening: so many first tokens, the same in all prompts and fewer than any has, are computed
        once; neither is checked.
    Raises:
      ValueError: as `hidden_states`.
    """
    rows, budget = rollouts.tokens.shape
    hidden = hidden_states(model, params, rollouts, shared, opening)
    stats = token_stats(
        hidden.reshape(rows * budget, -1),
        model.unembedding(params).astype(hidden.dtype),
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


def hidden_states(
    model: Model, params: Params, rollouts: Rollouts, shared: int = 1, opening: int = 0
) -> Float[Array, "B T D"]:
    """The last hidden states that the response tokens are predicted from; anything off the mask.

    Args:
      shared, opening: as for `score`.
    Raises:
      ValueError: `shared` does not divide the rows, the rollouts hold no prompts, or `opening` is
        not below the prompts' width.
    """
    rows, budget = rollouts.tokens.shape
    if rows % shared:
        raise ValueError(f"hidden_states: shared must divide the {rows} rows, got {shared}")
    responses = rollouts.tokens.reshape(-1, shared, budget)
    start = rollouts.prompt_length[::shared].astype(jnp.int32)
    prompts, answers = model.hidden_in_groups(
        params, rollouts.prompt_tokens[::shared], start, responses[:, :, :-1], opening
    )
    # The state that predicts a response token is that of the token before it.
    last = jnp.take_along_axis(prompts, start[:, None, None] - opening - 1, axis=1)
    first = jnp.broadcast_to(last[:, None], (*responses.shape[:2], 1, last.shape[-1]))
    return jnp.concatenate([first, answers], axis=2).reshape(rows, budget, -1)
