"""Token statistics of an update: what is measured of which rows, in which context, beside whom."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from rlvr_jax.kernels import token_stats
from rlvr_jax.policy import Model, Params, hidden_states, score
from rlvr_jax.types import Rollouts, TokenStats, replace

__all__ = ["DIVERGENCES", "MEASURED", "statistics"]

DIVERGENCES = frozenset({"kl", "reverse_kl", "js"})
"""Statistics that compare the policy with a second one."""

MEASURED = {*token_stats.STATISTICS, "hidden", "tempered_logp", "second_prompt_logp"}
"""All that `statistics` can measure."""


def statistics(
    model: Model,
    params: Params,
    rollouts: Rollouts,
    needs: Collection[str],
    options: Iterable[tuple[str, Any]] = (),
    shared: int = 1,
    opening: int = 0,
    other: Params | None = None,
) -> TokenStats:
    """Statistics [B, T] of the policy, differentiable in `params`; 0 off `Rollouts.scored`.

    Args:
      needs: of `MEASURED`.
      options, shared, opening: as for `policy.score`.
      other: the second policy of divergences, of the same shape; no gradient flows into it.
    """
    second = None
    if DIVERGENCES & {*needs}:
        if other is None:
            raise ValueError(
                "statistics: other must be a policy's weights for divergences, got None"
            )
        hidden = hidden_states(model, other, rollouts, shared, opening)
        second = hidden, model.unembedding(other).astype(hidden.dtype)
    own = {*needs} - {"second_prompt_logp"}
    stats = score(model, params, rollouts, own, options, shared, opening, second)
    if "second_prompt_logp" in needs:
        tokens, length = rollouts.second_tokens, rollouts.second_length
        beside = replace(rollouts, prompt_tokens=tokens, prompt_length=length)
        stats = replace(stats, second_prompt_logp=score(model, params, beside).logp)
    return stats
