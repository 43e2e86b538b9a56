"""Token statistics of rollouts under a policy: the model's half of an update."""

from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.kernels.token_stats import token_stats
from rlvr_jax.policy import bitwise, products
from rlvr_jax.policy.config import wide_dtype
from rlvr_jax.policy.flash import flash_serves
from rlvr_jax.policy.model import Model, Params
from rlvr_jax.policy.trees import PrefixTree, computed_places, taken
from rlvr_jax.types import Rollouts, TokenStats
from rlvr_jax.types.token_stats import derive, measured_for

CHUNK = 64
"""Rows that are scored at the same time if memory must be bounded."""

_GATHERED = 1024
"""Places whose tokens' embeddings are gathered at once."""


def score(
    model: Model,
    params: Params,
    rollouts: Rollouts,
    needs: Collection[str] = ("logp",),
    options: Iterable[tuple[str, Any]] = (),
    *,
    shared: int = 1,
    opening: int = 0,
    tree: PrefixTree | None = None,
    other: tuple[Float[Array, "B T D"], Float[Array, "V D"]] | None = None,
) -> TokenStats:
    """Statistics of every response token, [B, T], at its sampling temperature.

    Examples:
      >>> from importlib import resources
      >>> from rlvr_jax import policy, tasks
      >>> from rlvr_jax.rollout import load_rollouts
      >>> model, params = policy.load(tasks.load("brackets").base_model)
      >>> path = resources.files("rlvr_jax") / "rollout/examples/brackets_rollouts.npz"
      >>> rollouts, _, _ = load_rollouts(path)
      >>> policy.score(model, params, rollouts, needs=["logp", "entropy"]).entropy.shape
      (512, 24)

    No array over tokens and vocabulary is made. The result is differentiable in `params`. It is 0
    off the mask, except for the tokens of supervised rows.

    Args:
      model, params: policy and its weights.
      rollouts: rows with prompts and response tokens.
      needs: names of fields of `TokenStats`: statistics of `token_stats`; "hidden", the state that
        the token was predicted from; and "tempered_logp".
      options: name and value, e.g. (("top_k", 8),): further arguments of `token_stats`, and
        "temperatures", the factors of "tempered_logp".
      shared: number of adjacent rows that have one prompt, which is computed once. This is not
        checked.
      opening: number of first tokens that all prompts share, which are computed once. They are
        fewer than the tokens of any prompt. This is not checked.
      tree: `policy.trees.prefix_tree` of these rows, which replaces `shared` and `opening`.
      other: hidden states and unembedding of the second policy of divergences.
    Raises:
      ValueError: as `hidden_states`; "tempered_logp" without temperatures.
    """
    further = dict(options)
    temperatures = further.pop("temperatures", ())
    if "tempered_logp" in measured_for(needs) and not temperatures:
        raise ValueError("score: options must have temperatures for tempered_logp, got none")
    hidden = hidden_states(model, params, rollouts, shared, opening, tree)
    unembedding = model.unembedding(params).astype(hidden.dtype)
    mask = rollouts.scored if tree is None else rollouts.scored & computed_places(tree)

    asked, needs = needs, measured_for(needs)
    own = needs - {"hidden", "tempered_logp"}
    if other is not None:
        further["other"] = other[0].reshape(rollouts.tokens.size, -1), other[1]
    measure = partial(score_hidden, model, rollouts=rollouts, mask=mask)
    stats = measure(hidden, unembedding, needs=own, **further)
    if "tempered_logp" in needs:
        fixed = jax.lax.stop_gradient((hidden, unembedding))
        tempered: list[Any] = [
            measure(*fixed, needs={"logp"}, heat=factor).logp for factor in temperatures
        ]
        stats = stats.replace(tempered_logp=jnp.stack(tempered, axis=-1))
    if tree is not None:
        stats = taken(stats, tree.twin, tree.tokens.shape[0])
    if "hidden" in needs:
        stats = stats.replace(hidden=jnp.where(rollouts.mask[:, :, None], hidden, 0))
    return derive(stats, asked, rollouts.scored)


def score_hidden(
    model: Model,
    hidden: Float[Array, "B T D"],
    unembedding: Float[Array, "V D"],
    rollouts: Rollouts,
    needs: Collection[str],
    *,
    heat: float = 1.0,
    mask: Bool[Array, "B T"] | None = None,
    **options: Any,
) -> TokenStats:
    """Statistics [B, T] of the predictions of hidden states, at the rollouts' temperatures.

    Args:
      model: the policy.
      hidden: states before the unembedding, one per target.
      unembedding: matrix of the vocabulary.
      rollouts: targets and temperatures.
      needs: names of statistics.
      heat: factor on the temperatures.
      mask: places to score; None: `Rollouts.scored`.
      options: of the statistics, as for `score`.
    """
    mask = rollouts.scored if mask is None else mask
    temperature = heat * rollouts.temperature
    return stats_of_hidden(
        model, hidden, unembedding, rollouts.tokens, mask, temperature, needs=needs, **options
    )


def stats_of_hidden(
    model: Model,
    hidden: Float[Array, "B T D"],
    unembedding: Float[Array, "V D"],
    tokens: Int[Array, "B T"],
    mask: Bool[Array, "B T"],
    temperature: Float[Array, "B T"],
    *,
    needs: Collection[str],
    **options: Any,
) -> TokenStats:
    """`token_stats` of the tokens that hidden states predict, [B, T].

    Args:
      model: the policy.
      hidden: states before the unembedding, one per token.
      unembedding: matrix of the vocabulary.
      tokens: ids.
      mask: places to score.
      temperature: of each place.
      needs: names of statistics.
      options: of the statistics, as for `score`.
    """
    rows, budget = tokens.shape
    hidden, tokens, mask, temperature = (
        each.reshape(rows * budget, *each.shape[2:]) for each in (hidden, tokens, mask, temperature)
    )
    softcap = model.config.logit_softcap
    stats = token_stats(
        hidden,
        unembedding,
        tokens,
        needs=needs,
        mask=mask,
        temperature=temperature,
        softcap=softcap,
        mesh=model.mesh,
        **options,
    )
    if model.config.bitwise and "logp" in needs:
        # The value has the sampler's form, the gradient is the kernel's.
        logp = bitwise.score(hidden, unembedding, tokens, temperature, softcap)
        usual = stats.get("logp")
        slope = usual - jax.lax.stop_gradient(usual)
        stats = stats.replace(logp=jnp.where(mask, logp, 0) + slope)
    return jax.tree.map(lambda field: field.reshape(rows, budget, *field.shape[1:]), stats)


def logits_of_ids(
    model: Model,
    hidden: Float[Array, "B T D"],
    unembedding: Float[Array, "V D"],
    rollouts: Rollouts,
    ids: Int[Array, "B T k"],
) -> Float[Array, "B T k"]:
    """Logits of some tokens at every place, at its temperature, in float32 at least.

    Embeddings of k tokens are gathered for `_GATHERED` places at a time.

    Args:
      model: the policy.
      hidden: states before the unembedding.
      unembedding: matrix of the vocabulary.
      rollouts: temperatures.
      ids: k tokens at each place.
    """
    wide = jnp.promote_types(hidden.dtype, jnp.float32)
    number, count = ids.shape[0] * ids.shape[1], ids.shape[2]
    blocks = -(-number // _GATHERED)
    flat = hidden.reshape(number, -1), ids.reshape(number, count)
    padded = [jnp.pad(x, ((0, blocks * _GATHERED - number), (0, 0))) for x in flat]
    parts = [x.reshape(blocks, _GATHERED, -1) for x in padded]

    def of_block(part):
        states, own = part
        rows = jnp.take(unembedding, own, axis=0).astype(wide)
        return products.einsum("nd,nkd->nk", states.astype(wide), rows)

    logits = jax.lax.map(jax.checkpoint(of_block), tuple(parts))
    logits = logits.reshape(-1, count)[:number].reshape(ids.shape)
    cap = model.config.logit_softcap
    logits = logits if cap is None else cap * jnp.tanh(logits / cap)
    return logits / rollouts.temperature[:, :, None].astype(wide)


def score_prompts(
    model: Model, params: Params, rollouts: Rollouts, shared: int = 1
) -> Float[Array, "B P"]:
    """Log-probs of the prompts' tokens at temperature 1; 0 for the first and after the last.

    Args:
      model, params: policy and its weights.
      rollouts: rows with prompts.
      shared: number of adjacent rows that have one prompt, which is scored once.
    Raises:
      ValueError: as `hidden_states`.
    """
    tokens, length = rollouts.prompt_tokens, rollouts.prompt_length
    rows, width = tokens.shape
    if width == 1:
        return jnp.zeros((rows, 1), wide_dtype(model.config.compute_dtype))
    # The first token is the prompt of the others.
    mask = jnp.arange(1, width, dtype=length.dtype)[None] < length[:, None]
    framed = rollouts.replace(
        prompt_tokens=tokens[:, :1],
        prompt_length=jnp.ones_like(length),
        tokens=tokens[:, 1:],
        length=length - 1,
        mask=mask,
        temperature=jnp.ones(mask.shape, rollouts.temperature.dtype),
    )
    logp: Any = score(model, params, jax.tree.map(lambda x: x[::shared], framed)).logp
    return jnp.repeat(jnp.pad(logp, ((0, 0), (1, 0))), shared, axis=0)


def score_vocabulary(model: Model, params: Params, rollouts: Rollouts) -> Float[Array, "B T V"]:
    """Log-probs of all tokens at every place, at the temperature of the place, in float32; anything
    off the mask. An array over tokens and vocabulary: for small vocabularies and few rows.

    Raises:
      ValueError: as `hidden_states`.
    """
    hidden = hidden_states(model, params, rollouts)
    logits = model.to_logits(params, hidden)
    scaled = logits.astype(rollouts.temperature.dtype) / rollouts.temperature[:, :, None]
    return jax.nn.log_softmax(scaled, axis=-1)


def hidden_states(
    model: Model,
    params: Params,
    rollouts: Rollouts,
    shared: int = 1,
    opening: int = 0,
    tree: PrefixTree | None = None,
) -> Float[Array, "B T D"]:
    """The last hidden states that the response tokens are predicted from; anything off the mask.

    Where the sampler fed itself a mixture of embeddings (record `soft`), or a prompt begins with
    vectors (`Rollouts.soft_prompt`), these are read. In a mixture of experts the recorded `routes`
    are replayed. The experts of a token are then those of the sampler, weighted by this router.

    Args:
      model, params, rollouts: as for `score`.
      shared, opening, tree: as for `score`.
    Raises:
      ValueError: `shared` does not divide the rows, the rollouts hold no prompts, or `opening` is
        not below the prompts' width.
    """
    if tree is not None:
        states = model.hidden_in_tree(params, tree)
        return taken(states, tree.node, tree.tokens.shape[0])
    rows, budget = rollouts.tokens.shape
    if rows % shared:
        raise ValueError(f"hidden_states: shared must divide the {rows} rows, got {shared}")
    responses, prompts = rollouts.tokens, rollouts.prompt_tokens
    if "soft_prompt" in rollouts.records:
        # Every row has a prompt of its own, from its first place on.
        shared, opening = 1, 0
    if "soft_prompt" in rollouts.records or "candidate_weight" in rollouts.records:
        prompts = _prompt_inputs(params, rollouts)
        responses = _mixed_inputs(params, rollouts)
    responses = responses.reshape(-1, shared, *responses.shape[1:])
    start = rollouts.prompt_length[::shared].astype(jnp.int32)
    # Nothing is predicted from a last token. The kernel has whole blocks with it, where budgets are
    # round numbers, and without it would copy queries, keys and values to fill the last one.
    read = budget if flash_serves(model.config, budget, model.mesh) else budget - 1
    routes = None
    if "routes" in rollouts.records:
        own = rollouts.records["routes"]
        own = own.reshape(*responses.shape[:3], *own.shape[2:])[:, :, :read]
        routes = rollouts.records["prompt_routes"][::shared], own
    prompts, answers = model.hidden_in_groups(
        params, prompts[::shared], start, responses[:, :, :read], opening, routes=routes
    )
    # The state that predicts a response token is that of the token before it.
    last = jnp.take_along_axis(prompts, start[:, None, None] - opening - 1, axis=1)
    first = jnp.broadcast_to(last[:, None], (*responses.shape[:2], 1, last.shape[-1]))
    return jnp.concatenate([first, answers[:, :, : budget - 1]], axis=2).reshape(rows, budget, -1)


def without_routes(rollouts: Rollouts) -> Rollouts:
    """The rollouts for another policy or other inputs, where the router chooses by itself."""
    return rollouts.replace(routes=None, prompt_routes=None)


def shared_prompts(rollouts: Rollouts, at_once: int = CHUNK) -> int:
    """Number of adjacent rows with one prompt in every chunk of `run_in_chunks`, a divisor of
    `at_once`: a valid `shared` of `score`."""
    prompts = np.column_stack([rollouts.prompt_length, rollouts.prompt_tokens])
    count = len(prompts)
    changes = np.flatnonzero((prompts[1:] != prompts[:-1]).any(axis=1)) + 1
    # The last chunk goes on with the first rows.
    return int(np.gcd.reduce([at_once, count, *changes.tolist()]))


def run_in_chunks(run: Callable[[Rollouts], Any], rollouts: Rollouts, at_once: int = CHUNK) -> Any:
    """Results of a compiled function for all rows, on the host, in chunks, so that memory is
    bounded. The last chunk is filled up with earlier rows.

    Args:
      run: from `at_once` rows to a pytree of arrays with as many rows.
    """
    count, found = len(rollouts.group), []
    for first in range(0, count, at_once):
        rows = np.arange(first, first + at_once) % count
        result = run(jax.tree.map(lambda x, rows=rows: x[rows], rollouts))
        own = min(at_once, count - first)
        found.append(jax.tree.map(lambda x, own=own: np.asarray(x)[:own], result))
    return jax.tree.map(lambda *parts: np.concatenate(parts), *found)


def _mixed_inputs(params: Params, rollouts: Rollouts) -> Float[Array, "B T D"]:
    """The embeddings that were fed in the place of the response's tokens."""
    embedding = params["embedding"]
    soft, weight = rollouts.records.get("soft"), rollouts.records.get("candidate_weight")
    if soft is None or weight is None:
        return embedding[rollouts.tokens]

    def mixed(row):
        ids, weight = row
        return products.einsum("tk,tkd->td", weight.astype(embedding.dtype), embedding[ids])

    # Row by row: K embeddings of every token of a batch would not fit.
    mixture = jax.lax.map(jax.checkpoint(mixed), (rollouts.records["candidate_ids"], weight))
    return jnp.where(soft[:, :, None], mixture, embedding[rollouts.tokens])


def _prompt_inputs(params: Params, rollouts: Rollouts) -> Float[Array, "B P D"]:
    """The embeddings of the prompts, with the vectors that some begin with."""
    own = params["embedding"][rollouts.prompt_tokens]
    vectors, length = rollouts.records.get("soft_prompt"), rollouts.records.get("soft_length")
    if vectors is None or length is None:
        return own
    number = vectors.shape[1]
    soft = jax.lax.stop_gradient(vectors).astype(own.dtype)
    there = (length > 0)[:, None, None]
    return own.at[:, :number].set(jnp.where(there, soft, own[:, :number]))
