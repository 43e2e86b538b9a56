"""Token statistics of an update: kinds, rows, contexts and micro-batches."""

from collections.abc import Collection, Iterable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from rlvr_jax.objectives import masked_mean
from rlvr_jax.policy import Model, Params, hidden_states, score, score_vocabulary
from rlvr_jax.policy.scoring import logits_of_ids, score_hidden, without_routes
from rlvr_jax.policy.trees import PrefixTree
from rlvr_jax.types import STATISTICS, Rollouts, TokenStats
from rlvr_jax.types.token_stats import derive, measured_for

_OF_TEACHER = frozenset({"teacher_entropy", "teacher_topk_logp"})

DIVERGENCES = frozenset({"kl", "reverse_kl", "js"}) | _OF_TEACHER
"""Statistics that compare the policy with a second one, or are of that."""

_BY_PASSES = frozenset({"second_prompt_logp", "candidate_logp", "verdict_logp"})
_BY_PASSES |= {"all_logp", "mean_hidden"}
"""Statistics that this module measures by passes of their own."""


def measurable() -> set[str]:
    """The statistics that an objective may read in training."""
    return STATISTICS.keys() - {"value", "all_logp", "mean_hidden"}


_CANDIDATES = ("hidden", "logsumexp")
"""The statistics that log-probs of candidates are made of."""


def statistics(
    model: Model,
    params: Params,
    rollouts: Rollouts,
    needs: Collection[str],
    options: Iterable[tuple[str, Any]] = (),
    *,
    shared: int = 1,
    opening: int = 0,
    tree: PrefixTree | None = None,
    other: Params | None = None,
) -> TokenStats:
    """Returns statistics [B, T] of the policy, differentiable in `params`; 0 off `scored`.

    Args:
      model: the policy.
      params: its weights.
      rollouts: tokens that are scored.
      needs: of `STATISTICS`; "teacher_topk_logp" with "topk_ids", "candidate_logp" of rows that
        have candidates.
      options, shared, opening, tree: as for `policy.score`.
      other: the second policy of divergences, of the same shape; no gradient flows into it. It
        reads the second prompts of rows that have one.
    """
    asked, needs = needs, measured_for(needs)
    second = None
    if DIVERGENCES & needs:
        if other is None:
            raise ValueError(
                "statistics: other must be a policy's weights for divergences, got None"
            )
        other = jax.lax.stop_gradient(other)
        if "second_tokens" not in rollouts.records:
            hidden = hidden_states(model, other, rollouts, shared, opening, tree)
        else:
            hidden = hidden_states(model, other, after_second_prompt(rollouts))
        second = hidden, model.unembedding(other).astype(hidden.dtype)
    own = needs - _BY_PASSES - _OF_TEACHER
    if "candidate_logp" in needs:
        own |= {"hidden", "logsumexp"}
    compared = second if (DIVERGENCES - _OF_TEACHER) & own else None
    how = {"shared": shared, "opening": opening, "tree": tree, "other": compared}
    stats = score(model, params, rollouts, own, options, **how)
    if "candidate_logp" in needs:
        hidden, logsumexp = (stats.records[name] for name in _CANDIDATES)
        unembedding = model.unembedding(params).astype(hidden.dtype)
        ids = rollouts.records["candidate_ids"]
        logits = logits_of_ids(model, hidden, unembedding, rollouts, ids)
        logp = logits.astype(logsumexp.dtype) - logsumexp[:, :, None]
        logp = jnp.where(rollouts.scored[:, :, None], logp, 0)
        left = {name: stats.get(name) if name in needs else None for name in _CANDIDATES}
        stats = stats.replace(candidate_logp=logp, **left)
    if _OF_TEACHER & needs:
        ids = stats.records.get("topk_ids") if "teacher_topk_logp" in needs else None
        stats = stats.replace(**_of_teacher(model, second, rollouts, ids))
    if "second_prompt_logp" in needs:
        beside = after_second_prompt(rollouts)
        stats = stats.replace(second_prompt_logp=score(model, params, beside).logp)
    if "verdict_logp" in needs:
        stats = stats.replace(verdict_logp=verdicts(model, params, rollouts))
    if "all_logp" in needs:
        stats = stats.replace(all_logp=score_vocabulary(model, params, rollouts))
    if "mean_hidden" in needs:
        hidden = hidden_states(model, params, rollouts)
        mask = jnp.broadcast_to(rollouts.mask[:, :, None], hidden.shape)
        stats = stats.replace(mean_hidden=masked_mean(hidden, mask, axis=1))
    return derive(stats, asked, rollouts.scored)


def verdicts(model: Model, params: Params, rollouts: Rollouts) -> Float[Array, "B K"]:
    """The statistic `verdict_logp`, by a separate pass over prompt, response and question."""
    response, asked = rollouts.length, rollouts.records["asked_length"]
    width = rollouts.tokens.shape[1] + rollouts.records["asked_tokens"].shape[1] + 1
    places = jnp.arange(width, dtype=response.dtype)[None]

    def at(tokens, places):
        # A column more, because the question may be empty.
        padded = jnp.pad(tokens, ((0, 0), (0, 1)))
        inside = jnp.clip(places, 0, tokens.shape[1])
        return jnp.take_along_axis(padded, inside, axis=1)

    behind = places - response[:, None]
    tokens = jnp.where(
        behind < 0, at(rollouts.tokens, places), at(rollouts.records["asked_tokens"], behind)
    )
    last = response + asked
    whole = without_routes(rollouts).replace(tokens=jnp.where(places < last[:, None], tokens, 0))
    hidden = hidden_states(model, params, whole)
    state = jnp.take_along_axis(hidden, last[:, None, None], axis=1)
    ids = rollouts.records["verdict_ids"]
    everywhere = jnp.ones(ids.shape, bool)
    framed = rollouts.replace(
        tokens=ids,
        mask=everywhere,
        supervised=None,
        temperature=everywhere.astype(rollouts.temperature.dtype),
    )
    states = jnp.broadcast_to(state, (*ids.shape, state.shape[-1]))
    unembedding = model.unembedding(params).astype(hidden.dtype)
    return score_hidden(model, states, unembedding, framed, {"logp"}).logp


def after_second_prompt(rollouts: Rollouts) -> Rollouts:
    """The rows after their second prompts; those that have none after their own."""
    there = rollouts.records["second_length"] > 0
    one, two = rollouts.prompt_tokens, rollouts.records["second_tokens"]
    width = max(one.shape[1], two.shape[1])
    one, two = (jnp.pad(x, ((0, 0), (0, width - x.shape[1]))) for x in (one, two))
    return rollouts.replace(
        prompt_tokens=jnp.where(there[:, None], two, one),
        prompt_length=jnp.where(there, rollouts.records["second_length"], rollouts.prompt_length),
    )


def _of_teacher(
    model: Model, second, rollouts: Rollouts, ids: Int[Array, "B T k"] | None
) -> dict[str, Array]:
    """Entropy of the second policy, and its log-probs of some tokens if any are given."""
    needs = {"entropy"} if ids is None else {"entropy", "logsumexp"}
    teacher = score_hidden(model, *second, rollouts, needs)
    if ids is None:
        return {"teacher_entropy": teacher.entropy}
    logits = logits_of_ids(model, *jax.lax.stop_gradient(second), rollouts, ids)
    logits = logits.astype(teacher.entropy.dtype)
    logp = jnp.where(
        rollouts.scored[:, :, None], logits - teacher.records["logsumexp"][:, :, None], 0
    )
    return {"teacher_entropy": teacher.entropy, "teacher_topk_logp": logp}
