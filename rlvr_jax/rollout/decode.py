"""Drawing tokens: the loop of the sampler."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.arguments import check_each
from rlvr_jax.policy import LayerCache, Model, Params, SharedCache, bitwise
from rlvr_jax.rollout.arguments import stop_ids, temperatures
from rlvr_jax.rollout.distribution import chosen, entropy, tiled
from rlvr_jax.rollout.pool import BUDGET, FINISHED, OPTIONAL, RUNNING, Pool, paused_at_limit
from rlvr_jax.rollout.processors import Sampling, TokenContext
from rlvr_jax.rollout.records import with_records
from rlvr_jax.rollout.soft import SoftThinking, mixture, mixture_input, thinks
from rlvr_jax.types.hyperparameters import NonNegativeInt


def decode(
    model: Model,
    params: Params,
    pool: Pool,
    steps: int,
    sampling: Sampling,
    stop_tokens: Sequence[int],
    *,
    weight_version: Int[Array, ""] | int = 0,
    temperature: Float[Array, "R"] | float | None = None,
    constants: Any = None,
    record_top: int = 0,
    stop_state: Int[Array, "R"] | None = None,
) -> Pool:
    """Samples at most `steps` tokens for every running row; ends early when no row runs.

    A row that was paused by its limit runs again if the limit was raised. Tokens and
    records are equal for a temperature in `sampling` and as argument, up to rounding.

    Args:
      model, params: policy and its weights.
      pool: pool of the rows.
      steps: largest number of tokens of a row in this call.
      sampling: a row is STOPPED at the token that completes one of its `stops`. The token stays in
        the row, and `Pool.stop` has the number of the text. A text ends in a token just sampled.
        It may begin anywhere after the prompt, also in given tokens. Stop tokens still finish rows.
      stop_tokens: ids that finish a row; the stop token is part of the response.
      weight_version: recorded with every token.
      temperature: of each row or of all, at least 1e-6. It replaces that of `sampling` here and in
        later calls. None: the temperatures of the rows do not change.
      constants: values that the processor reads as `context.constants`.
      record_top: number of most probable tokens to record for each sampled one; 0: none.
      stop_state: of `sampling.stops` at the end of each row's prompt; None: 0.
    Raises:
      ValueError: record_top above the vocabulary or different from that of the pool; no Sampling;
        invalid stop tokens; on the host, temperatures below 0.
    """
    if not isinstance(sampling, Sampling):
        raise ValueError(f"decode: sampling must be a Sampling, got {sampling!r}")
    check_each(NonNegativeInt, "decode", steps=steps)
    stops = stop_ids("decode", stop_tokens)
    temperature = temperatures("decode", temperature)
    watch = sampling.stops
    processor = sampling.chain()
    pool = with_records(model, pool, sampling, processor, temperature, record_top)
    if processor is not None:
        begun = processor.init(pool.tokens.shape[0])
        carry = begun if pool.carry is None else keep(pool.fresh, begun, pool.carry)
        pool = replace(pool, carry=carry, fresh=jnp.zeros_like(pool.fresh))
    how = Drawing(
        model,
        model.unstacked(params),
        sampling,
        stops,
        jnp.asarray(weight_version, jnp.int32),
        jax.tree.map(jnp.asarray, constants),
        record_top,
    )
    numbers = uniforms(pool, steps)

    def body(carry):
        step, pool, state = carry
        sampled = _one_token(how, pool, numbers[:, step])
        if watch is not None:
            sampled, state = watch.paused(sampled, pool.status == RUNNING, state)
        return step + 1, sampled, state

    def some_row_runs(carry):
        step, pool, _ = carry
        return (step < steps) & jnp.any(pool.status == RUNNING)

    state = None if watch is None else watch.written(pool, stop_state)
    start = jnp.zeros((), jnp.int32), paused_at_limit(pool), state
    return jax.lax.while_loop(some_row_runs, body, start)[1]


def uniforms(pool: Pool, steps: int) -> Float[Array, "R steps 2"]:
    """Two numbers for each row's next tokens, keyed by row and position; made before the loop."""

    def of_row(key, start):
        return jax.vmap(
            lambda i: jax.random.uniform(jax.random.fold_in(key, start + i), (2,), jnp.float32)
        )(jnp.arange(steps, dtype=jnp.int32))

    return jax.vmap(of_row)(pool.key, pool.length)


@dataclass(frozen=True)
class Drawing:
    """Settings with which a call of the sampler chooses each token.

    Fields:
      params: layer by layer (`Model.unstacked`).
      stop_tokens: ids that finish a row.
      weight_version: recorded with every token.
      constants: values that the processor reads, arrays.
      record_top: number of most probable tokens to record for each sampled one; 0: none.
    """

    model: Model
    params: Params
    sampling: Sampling
    stop_tokens: Int[Array, "S"]
    weight_version: Int[Array, ""]
    constants: Any = None
    record_top: int = 0


def _one_token(how: Drawing, pool: Pool, uniform: Float[Array, "R 2"]) -> Pool:
    """Draws a token for each row that runs."""
    running, last = pool.status == RUNNING, pool.length - 1
    fed = jnp.where(running, last, pool.tokens.shape[1])
    token = jnp.take_along_axis(pool.tokens, jnp.maximum(last, 0)[:, None], axis=1)[:, 0]
    position = pool.length - pool.prompt_length
    context = TokenContext(position, how.weight_version, pool.temperature, how.constants, token)
    soft, given = how.sampling.soft, token[:, None]
    if soft is not None:

        def of_last(record):
            return record[jnp.arange(len(last)), jnp.maximum(last, 0)]

        mixed = (of_last(x) for x in (pool.soft, pool.candidate_ids, pool.candidate_weight))
        given = mixture_input(how.params["embedding"], token, *mixed)
    ahead, caches, carry = look_ahead(how, pool, context, given, fed, running)
    pool = replace(pool, caches=caches, carry=carry)
    if soft is not None and ahead.policy is not None:
        ahead = _softly(soft, ahead.policy, ahead, pool, how.stop_tokens)
    return draw(how, pool, ahead, uniform, running)


class _Ahead(NamedTuple):
    """What comes next in some rows.

    Fields:
      policy: its logits at the sampling temperature; None if they are the sampled ones.
      tiles: logits that are sampled, less the largest of the row, tile by tile.
      mass: Σ exp over each tile.
      entropy: of the policy, nats.
      token_temperature, sampled_temperature: of the policy, and of the sampled distribution as far
        as the processor declares its divisor.
      topk_logp, topk_ids: of the policy; None if they are not recorded.
      soft, candidate_ids, candidate_weight, candidate_noisy_logp: of rows that think softly.
      behaviour_logp: of those rows, and NaN of others; None: there are none.
      routes: of the token that was fed; None if they are not recorded.
    """

    policy: Float[Array, "R V"] | None
    tiles: Float[Array, "R n t"]
    mass: Float[Array, "R n"]
    entropy: Float[Array, "R"]
    token_temperature: Float[Array, "R"]
    sampled_temperature: Float[Array, "R"]
    topk_logp: Float[Array, "R k"] | None = None
    topk_ids: Int[Array, "R k"] | None = None
    soft: Bool[Array, "R"] | None = None
    candidate_ids: Int[Array, "R k"] | None = None
    candidate_weight: Float[Array, "R k"] | None = None
    candidate_noisy_logp: Float[Array, "R k"] | None = None
    behaviour_logp: Float[Array, "R"] | None = None
    routes: Int[Array, "R n k"] | None = None


def look_ahead(
    how: Drawing,
    pool: Pool,
    context: TokenContext,
    given: Int[Array, "C 1"] | Float[Array, "C 1 D"],
    fed: Int[Array, "C"],
    running: Bool[Array, "C"],
) -> tuple[_Ahead, tuple[LayerCache | SharedCache, ...], Any]:
    """Feeds each cached row its last token, at position `fed`, past all slots where none is to be
    fed.

    Args:
      how: settings of the sampler and constants of its processor.
      pool: its caches and the processor's carry are of C rows.
      context: of these rows, with their last token. Its temperature is None where that of
        `sampling` holds; the rest is filled in here.
      given: the last tokens, or embeddings in their place.
      fed: position of the last token of each row.
      running: rows that receive a further token.
    Returns:
      Next tokens, the caches with the given tokens, and the carry, changed for running rows.
    """
    model, params, sampling = how.model, how.params, how.sampling
    processor, carry = sampling.chain(), pool.carry
    fed, routes = fed[:, None], None
    if pool.routes is None:
        hidden, caches = model.extend(params, pool.caches, given, fed)
    else:
        hidden, caches, routes = model.extend_routed(params, pool.caches, given, fed)
        routes = routes[:, 0]
    policy = model.to_logits(params, hidden[:, 0])
    temperature = context.temperature
    if temperature is None:
        # Divided by the number itself: compiled with the program, it costs nothing where it is 1.
        divided = policy / sampling.temperature
        temperature = jnp.full(running.shape, sampling.temperature, policy.dtype)
    else:
        divided = policy / temperature[:, None]
    policy = bitwise.tempered(policy, temperature) if model.config.bitwise else divided
    context = context._replace(temperature=temperature, hidden=hidden[:, 0])
    sampled, heat = policy, temperature
    if processor is not None:
        sampled, state = processor.apply(policy, carry, context)
        if processor.temperature is not None:
            heat = heat * processor.temperature(state, context).astype(heat.dtype)
        carry = keep(running, state, carry)
    # A soft row's token is not sampled: its log-prob is still the policy's.
    unprocessed = None if processor is None and sampling.soft is None else policy
    ahead = _Ahead(unprocessed, *tiled(sampled), entropy(policy), temperature, heat)
    ahead = ahead._replace(routes=routes)
    if how.record_top:
        largest, ids = jax.lax.top_k(policy, how.record_top)
        logp = largest - jax.nn.logsumexp(policy, axis=-1, keepdims=True)
        ahead = ahead._replace(topk_logp=logp, topk_ids=ids)
    return ahead, caches, carry


class Places(NamedTuple):
    """Rows that sample from what comes next in others.

    Fields:
      row: of the pool, each at most once where it is real.
      slot: where the logits of the row are.
    """

    row: Int[Array, "Q"]
    slot: Int[Array, "Q"]


def draw(
    how: Drawing,
    pool: Pool,
    ahead: _Ahead,
    uniform: Float[Array, "Q 2"],
    real: Bool[Array, "Q"],
    places: Places | None = None,
) -> Pool:
    """Draws the next token of some rows.

    Args:
      how: settings of the sampler and constants of its processor.
      pool: the rows; those of `places` change.
      ahead: next tokens of `look_ahead`, over the vocabulary.
      uniform: two random numbers in [0, 1) for each row.
      real: False where nothing is sampled.
      places: of these rows; None: all, in order. Without it no array is indexed by rows, which a
        mesh would gather.
    """
    rows, slot = (None, None) if places is None else places

    def seen(array):
        return array if slot is None else array[slot]

    def own(array):
        return array if rows is None else array[rows]

    token, behaviour_logp = chosen(ahead.tiles, ahead.mass, uniform, slot)
    same = how.model.config.bitwise
    if same:
        behaviour_logp = bitwise.log_prob(seen(ahead.tiles).reshape(len(token), -1), token)
    logp = behaviour_logp
    if same and ahead.policy is not None:
        logp = bitwise.log_prob(seen(ahead.policy), token)
    elif ahead.policy is not None:
        if slot is None:
            logp = jnp.take_along_axis(ahead.policy, token[:, None], axis=-1)[:, 0]
        else:
            logp = ahead.policy[slot, token]
        logp -= seen(jax.nn.logsumexp(ahead.policy, axis=-1))
    if ahead.behaviour_logp is not None:
        recorded = seen(ahead.behaviour_logp)
        behaviour_logp = jnp.where(jnp.isnan(recorded), behaviour_logp, recorded)

    number, slots = pool.tokens.shape
    length, before = own(pool.length), own(pool.status)
    at = jnp.where(real, length, slots)
    to = jnp.arange(number, dtype=jnp.int32) if rows is None else jnp.where(real, rows, number)

    def put(array, value):
        return array.at[to, at].set(value.astype(array.dtype), mode="drop")

    def changed(array, value):
        return value if rows is None else array.at[to].set(value, mode="drop")

    optional = {
        name: put(getattr(pool, name), seen(getattr(ahead, name)))
        for name in OPTIONAL
        if getattr(pool, name) is not None and getattr(ahead, name) is not None
    }
    if pool.routes is not None and ahead.routes is not None:
        # Of the token before, which the next one is predicted from.
        used = pool.routes.at[to, jnp.where(real, length - 1, slots)].set(
            seen(ahead.routes), mode="drop"
        )
        optional["routes"] = used
    length = length + real.astype(jnp.int32)
    stopped = jnp.any(token[:, None] == how.stop_tokens[None], axis=1)
    status = jnp.where(stopped, FINISHED, jnp.where(length >= own(pool.limit), BUDGET, RUNNING))
    return replace(
        pool,
        tokens=put(pool.tokens, token),
        length=changed(pool.length, length),
        status=changed(pool.status, jnp.where(real, status, before)),
        mask=put(pool.mask, real),
        logp=put(pool.logp, logp),
        behaviour_logp=put(pool.behaviour_logp, behaviour_logp),
        entropy=put(pool.entropy, seen(ahead.entropy)),
        version=put(pool.version, jnp.broadcast_to(how.weight_version, token.shape)),
        **optional,
    )


def _softly(
    how: SoftThinking,
    policy: Float[Array, "R V"],
    ahead: _Ahead,
    pool: Pool,
    stop_tokens: Int[Array, "n"],
) -> _Ahead:
    """What comes next where rows think softly: their token is the most weighty of a mixture."""
    rows, vocabulary = policy.shape
    sampled = ahead.tiles.reshape(rows, -1)[:, :vocabulary]
    thinking = thinks(pool.tokens, pool.mask, how.end)
    mixed = mixture(how, sampled, thinking, pool.key, pool.length, stop_tokens)
    alone = jnp.arange(vocabulary, dtype=jnp.int32)[None] == mixed.token[:, None]
    alone = jnp.where(alone, jnp.zeros((), sampled.dtype), -jnp.inf)
    tiles, mass = tiled(jnp.where(thinking[:, None], alone, sampled))
    own = jnp.take_along_axis(policy, mixed.token[:, None], axis=-1)[:, 0]
    own -= jax.nn.logsumexp(policy, axis=-1)
    behaviour_logp = jnp.where(mixed.soft, mixed.logp, own)
    return ahead._replace(
        tiles=tiles,
        mass=mass,
        soft=mixed.soft,
        candidate_ids=mixed.candidate_ids,
        candidate_weight=mixed.candidate_weight,
        candidate_noisy_logp=mixed.candidate_noisy_logp,
        behaviour_logp=jnp.where(thinking, behaviour_logp, jnp.nan),
    )


def keep(running: Bool[Array, "R"], new: Any, old: Any) -> Any:
    """Takes a carry's new rows where the row runs."""

    def choose(new, old):
        return jnp.where(running.reshape(-1, *[1] * (new.ndim - 1)), new, old)

    return jax.tree.map(choose, new, old)
