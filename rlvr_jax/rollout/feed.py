"""Tokens that are given and not sampled: prompts, tools' replies, drafts, side queries."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from rlvr_jax.keys import checked_key
from rlvr_jax.policy import Model, Params
from rlvr_jax.policy.config import wide_dtype
from rlvr_jax.policy.scoring import stats_of_hidden
from rlvr_jax.rollout.arguments import row_mask, token_table, whole_numbers
from rlvr_jax.rollout.pool import (
    FINISHED,
    FREE,
    RUNNING,
    STOPPED,
    Pool,
    check_unshared,
    cleared,
    paused_at_limit,
    truncate,
)


def prefill(
    model: Model,
    params: Params,
    pool: Pool,
    tokens: Int[Array, "R n"],
    count: Int[Array, "R"],
    *,
    embeddings: Float[Array, "R n D"] | None = None,
    embedded: Bool[Array, "R n"] | None = None,
) -> Pool:
    """Appends given tokens to rows and fills their cache; mask, log-probs and entropy stay 0.

    They are the prompt of a free row. A row that is finished or was paused by a text runs again,
    for example after the reply of a tool.

    Args:
      model, params: policy and its weights.
      pool: pool of the rows.
      tokens: right-padded; row r gets its first count[r], 0 does not change it. They must be of the
        vocabulary, which is checked in lists and numpy's arrays, and fit into the row's slots,
        which is not.
      count: number of tokens of each row.
      embeddings: input of the model in place of tokens (a soft prefix): of the kind of the
        rows of `params["embedding"]`.
      embedded: places of the embeddings; the token there is recorded and not looked up. The last
        token of a row must not be embedded, which is not checked: `decode` feeds it again by its
        id, as it feeds the last token of a truncated row.
    Raises:
      ValueError: invalid tokens or counts; embeddings without `embedded` or the reverse, or of
        another shape.
    """
    if (embeddings is None) != (embedded is None):
        raise ValueError(
            "prefill: embeddings and embedded must be given together, got only"
            f" {'embedded' if embeddings is None else 'embeddings'}"
        )
    if embeddings is not None and embedded is not None:
        wanted = *jnp.shape(tokens), model.config.width
        if jnp.shape(embeddings) != wanted or jnp.shape(embedded) != wanted[:2]:
            raise ValueError(
                f"prefill: embeddings must have the shape {wanted} and embedded {wanted[:2]}, got"
                f" {jnp.shape(embeddings)} and {jnp.shape(embedded)}"
            )
    tokens, count = _given("prefill", "tokens", model, pool, tokens, count)
    soft = None if embeddings is None or embedded is None else (embeddings, embedded)
    return _fed(model, params, pool, tokens, count, soft)[0]


def verify(
    model: Model,
    params: Params,
    pool: Pool,
    draft: Int[Array, "R D"],
    count: Int[Array, "R"],
    accept: Callable[[Array, Array], Array],
    *,
    temperature: Float[Array, "R"] | float | None = None,
    behaviour_logp: Float[Array, "R D"] | None = None,
    stop_tokens: Sequence[int] = (),
    weight_version: Int[Array, ""] | int = 0,
) -> Pool:
    """Scores a draft of each row in one pass and appends its longest accepted prefix as sampled.

    The prefix is in the row, in its cache and in its record as if `decode` had sampled it; the next
    `decode` continues after it. With a stop token at its end the row is finished.

    Args:
      model, params: policy and its weights.
      pool: pool of the rows.
      draft: right-padded; row r's has count[r] tokens, 0 does not change the row. Tokens past the
        row's limit are dropped.
      count: number of draft tokens of each row.
      accept: (logp [R, D] under this policy, uniform numbers [R, D]) -> bool [R, D]. The numbers
        depend on row key and position, and differ from those of sampling.
      temperature: of the recorded log-probs and entropies, one for each row or for all. None: that
        of the rows of the pool, or 1 if they have none.
      behaviour_logp: recorded as such: log-probs when the draft was sampled. None: this policy's.
      stop_tokens: ids that finish a row.
      weight_version: number of the weights, recorded with every token.
    Raises:
      ValueError: invalid drafts or counts.
    """
    draft, count = _given("verify", "draft", model, pool, draft, count)
    start, (rows, width) = pool.length, draft.shape
    if temperature is None:
        temperature = 1.0 if pool.temperature is None else pool.temperature
    pool, hidden = _fed(model, params, pool, draft, count)
    logp, entropy = _scores(model, params, hidden, draft, count, temperature)
    positions = start[:, None] + jnp.arange(width, dtype=jnp.int32)[None]

    def uniform(key, position):
        # 1 apart from the numbers of `decode`, which come from (key, position) itself.
        return jax.random.uniform(jax.random.fold_in(jax.random.fold_in(key, position), 1))

    uniforms = jax.vmap(jax.vmap(uniform, (None, 0)))(pool.key, positions)
    given = jnp.arange(width, dtype=jnp.int32)[None] < count[:, None]
    given &= positions < pool.limit[:, None]
    accepted = jnp.cumprod((accept(logp, uniforms) & given).astype(jnp.int32), axis=1)
    number = jnp.sum(accepted, axis=1, dtype=jnp.int32)
    row, slots = jnp.arange(rows, dtype=jnp.int32)[:, None], pool.tokens.shape[1]
    at = jnp.where(accepted == 1, positions, slots)

    def put(array, values):
        return array.at[row, at].set(values.astype(array.dtype), mode="drop")

    recorded = logp if behaviour_logp is None else jnp.asarray(behaviour_logp)
    version = jnp.broadcast_to(jnp.asarray(weight_version, jnp.int32), draft.shape)
    used = jnp.asarray(temperature, pool.logp.dtype)
    used = jnp.broadcast_to(used[:, None] if used.ndim else used, draft.shape)
    temperatures = {
        name: put(getattr(pool, name), used)
        for name in ("token_temperature", "sampled_temperature")
        if getattr(pool, name) is not None
    }
    pool = replace(
        pool,
        mask=put(pool.mask, accepted == 1),
        logp=put(pool.logp, logp),
        behaviour_logp=put(pool.behaviour_logp, recorded),
        entropy=put(pool.entropy, entropy),
        version=put(pool.version, version),
        **temperatures,
    )
    pool = paused_at_limit(truncate(pool, start + number))
    last = jnp.take_along_axis(draft, jnp.maximum(number - 1, 0)[:, None], axis=1)
    stops = jnp.asarray(stop_tokens, jnp.int32)
    stopped = (number > 0) & jnp.any(last == stops[None], axis=1)
    return replace(pool, status=jnp.where(stopped, FINISHED, pool.status))


def probe(
    model: Model,
    params: Params,
    pool: Pool,
    query: Int[Array, "R Q"],
    count: Int[Array, "R"],
    temperature: float = 1.0,
) -> tuple[Float[Array, "R Q"], Float[Array, "R Q+1 D"]]:
    """Returns log-probs of given tokens at the end of each row; the pool does not change.

    Args:
      model, params: policy and its weights.
      pool: pool of the rows.
      query: right-padded; row r's has count[r] tokens. They must fit into the row's slots, which is
        not checked.
      count: number of query tokens of each row.
      temperature: temperature of the log-probs.
    Returns:
      Log-probs of the query, 0 after it; and the hidden states of the last token of the row and of
      the query, for a head. Both are NaN for tokens without a slot.
    Raises:
      ValueError: invalid queries or counts.
    """
    query, count = _given("probe", "query", model, pool, query, count)
    _, hidden = _fed(model, params, pool, query, count)
    logp, _ = _scores(model, params, hidden, query, count, temperature)
    offsets = jnp.arange(query.shape[1], dtype=jnp.int32)[None]
    lost = (offsets < count[:, None]) & (pool.length[:, None] + offsets >= pool.tokens.shape[1])
    behind = jnp.pad(lost, ((0, 0), (1, 0)))[:, :, None]
    return jnp.where(lost, jnp.nan, logp), jnp.where(behind, jnp.nan, hidden)


def reset(
    model: Model,
    params: Params,
    pool: Pool,
    rows: Bool[Array, "R"],
    tokens: Int[Array, "R n"],
    count: Int[Array, "R"],
    *,
    key: Key[Array, "R"],
) -> Pool:
    """Restarts rows with another prompt and key. Group and trace do not change, so the parts of a
    response in several contexts have equal ones.

    Args:
      model, params: policy and its weights.
      pool: pool of the rows.
      rows: True on the rows to reset; others do not change.
      tokens: the new prompts, right-padded, count[r] tokens in row r.
      count: number of tokens of each prompt.
      key: new key of each row.
    Raises:
      ValueError: other keys or bools than one for each row; on the host, tokens that are none of
        the vocabulary, or counts beyond their width.
    """
    rows = row_mask("reset", rows, len(pool.status))
    tokens, count = _given("reset", "tokens", model, pool, tokens, count)
    key = checked_key("reset", key, *rows.shape)
    pool = cleared(pool, rows)
    pool = replace(pool, key=jnp.where(rows, key, pool.key))
    return prefill(model, params, pool, tokens, jnp.where(rows, count, 0))


def _given(caller, name, model, pool, tokens, count) -> tuple[Array, Array]:
    """Given tokens and how many of them are meant, as int32.

    Raises:
      ValueError: no table of integers or no counts of its rows; on the host, ids that are none of
        the vocabulary, or counts beyond the table.
    """
    rows = len(pool.status)
    # Counts before the table, which is read by them, and after it, as it bounds them.
    whole_numbers(caller, "count", count, rows, 0)
    table = token_table(caller, name, tokens, model.config.vocab_size, count)
    return table, whole_numbers(caller, "count", count, rows, 0, table.shape[1])


def _fed(model, params, pool, tokens, count, soft=None) -> tuple[Pool, Array]:
    """The pool with the tokens appended, and hidden states [R, n + 1, D]: entry j, of the token
    before tokens[:, j], says how likely that one is."""
    check_unshared(pool, "prefill")
    slots = pool.tokens.shape[1]
    offsets = jnp.arange(tokens.shape[1], dtype=jnp.int32)[None]
    # Padding goes to a slot past the end, where writes are dropped.
    positions = jnp.where(offsets < count[:, None], pool.length[:, None] + offsets, slots)
    rows = jnp.arange(tokens.shape[0], dtype=jnp.int32)[:, None]
    # The last token of a row may not be cached yet (the invariant): feed it once more.
    last = jnp.maximum(pool.length - 1, 0)
    before = jnp.take_along_axis(pool.tokens, last[:, None], axis=1)
    feed = jnp.concatenate([before, tokens], axis=1)
    fed = jnp.concatenate([jnp.where(pool.length > 0, last, slots)[:, None], positions], axis=1)
    if soft is not None:
        embeddings, embedded = soft
        looked_up = params["embedding"][feed]
        embeddings = jnp.asarray(embeddings, looked_up.dtype)
        embeddings = jnp.pad(embeddings, ((0, 0), (1, 0), (0, 0)))
        feed = jnp.where(jnp.pad(embedded, ((0, 0), (1, 0)))[:, :, None], embeddings, looked_up)
    if pool.routes is None:
        hidden, caches = model.extend(params, pool.caches, feed, fed)
    else:
        hidden, caches, routes = model.extend_routed(params, pool.caches, feed, fed)
        pool = replace(pool, routes=pool.routes.at[rows, fed].set(routes, mode="drop"))
    started = (pool.status == FREE) & (count > 0)
    again = ((pool.status == FINISHED) | (pool.status == STOPPED)) & (count > 0)
    pool = replace(
        pool,
        tokens=pool.tokens.at[rows, positions].set(tokens, mode="drop"),
        length=pool.length + count,
        prompt_length=jnp.where(started, count, pool.prompt_length),
        status=jnp.where(started | again, RUNNING, pool.status),
        stop=jnp.where(again, -1, pool.stop),
        caches=caches,
    )
    return pool, hidden


def _scores(model, params, hidden, tokens, count, temperature) -> list[Array]:
    """Log-prob and entropy of given tokens, [R, n]; 0 after them."""
    rows, width = tokens.shape
    given = jnp.arange(width, dtype=jnp.int32)[None] < count[:, None]
    temperature = jnp.asarray(temperature, wide_dtype(hidden.dtype)).reshape(-1, 1)
    temperature = jnp.broadcast_to(temperature, (rows, width))
    needs = "logp", "entropy"
    states, unembedding = hidden[:, :-1], model.unembedding(params)
    stats = stats_of_hidden(model, states, unembedding, tokens, given, temperature, needs=needs)
    return [stats.get(name) for name in needs]
