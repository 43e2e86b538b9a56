"""Plain sampling: N responses to each prompt, the prompt computed once for its group."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from inspect import unwrap
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jax.sharding import PartitionSpec
from jaxtyping import Array, Float, Int, Key

from rlvr_jax.arguments import check_each
from rlvr_jax.keys import checked_key
from rlvr_jax.policy import Model, Params, products
from rlvr_jax.policy.config import wide_dtype
from rlvr_jax.policy.layout import ROWS, split_rows
from rlvr_jax.policy.model import check_opening
from rlvr_jax.rollout.arguments import stop_ids, temperatures, token_table, whole_numbers
from rlvr_jax.rollout.decode import Drawing, decode
from rlvr_jax.rollout.feed import prefill
from rlvr_jax.rollout.pool import Pool, check_unshared, empty, widen
from rlvr_jax.rollout.processors import LEAST_TEMPERATURE, Sampling
from rlvr_jax.rollout.refill import decode_in_turn
from rlvr_jax.rollout.to_rollouts import to_rollouts
from rlvr_jax.types import Rollouts
from rlvr_jax.types.hyperparameters import Count, NonNegativeInt


def row_keys(
    key: jax.Array, prompt_id: Int[Array, "P"], samples: int, first_sample: Int[Array, "P"]
) -> Key[Array, "P samples"]:
    """Keys of the rows: folded from `key` (of the run and step), the prompt and the sample number.

    Args:
      key: random key of the run and step.
      prompt_id: number of each prompt.
      samples: responses per prompt.
      first_sample: number of a prompt's first sample; above 0 where a prompt is sampled again.
    """

    def of_prompt(prompt, first):
        folded = jax.random.fold_in(key, prompt)
        return jax.vmap(lambda i: jax.random.fold_in(folded, first + i))(
            jnp.arange(samples, dtype=jnp.int32)
        )

    return jax.vmap(of_prompt)(prompt_id, first_sample)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Prompts:
    """Prompts of a call of `sample`.

    Fields:
      tokens: right-padded ids of the vocabulary.
      length: from 1 to L each. Both are checked in lists and numpy arrays, not in JAX arrays.
      number: identity of the prompt in its task; with `first_sample` it keys the random numbers.
      first_sample: number of the first sample of the prompt; above 0 if it is sampled again.
      temperature: of each prompt or of all, at least 1e-6, instead of that of `Sampling`. A change
        needs no compilation.
      soft_prompt: vectors that replace the embeddings of the first E tokens of every prompt. All
        prompts are longer, have no opening, and are computed together.
      stop_state: state of `Sampling.stops` at the end of each prompt, if a prompt ends with the
        beginning of a response; None: 0.
    """

    tokens: Int[Array, "P L"]
    length: Int[Array, "P"]
    number: Int[Array, "P"]
    first_sample: Int[Array, "P"]
    temperature: Float[Array, "P"] | float | None = None
    soft_prompt: Float[Array, "P E D"] | None = None
    stop_state: Int[Array, "P"] | None = None


def sample(
    model: Model,
    params: Params,
    prompts: Prompts,
    key: jax.Array,
    *,
    samples: int,
    response_tokens: int,
    sampling: Sampling,
    stop_tokens: Sequence[int],
    opening: int = 0,
    at_once: int | None = None,
    weight_version: Int[Array, ""] | int = 0,
    constants: Any = None,
    record_top: int = 0,
    record_routes: bool = False,
    beyond: bool = False,
) -> Rollouts:
    """Samples `samples` responses of at most `response_tokens` tokens to each prompt.

    A rollout depends only on the weights, its prompt and its key. It does not depend on the other
    prompts, their order or their number.

    A mesh (`model.mesh`) splits prompts and rows over data and fsdp. With only data, each device
    has all weights. If the prompts are divisible, it samples its rows independently. Else all
    devices take every step together. Every device then computes prompts that data × fsdp does not
    divide; rows must be divisible.

    Args:
      model, params: policy and its weights.
      prompts: prompts, right-padded.
      key: random key of the run and step.
      samples: responses per prompt.
      response_tokens: largest number of tokens of a response.
      sampling: temperature, cuts, stop texts and processor.
      stop_tokens: ids that end a response, in any collection.
      opening: number of first tokens that all prompts share, computed once. They are fewer than the
        tokens of any prompt. This is not checked.
      at_once: rows that are computed at the same time, over all devices (`refill`). None: all rows.
      weight_version: number of the weights, recorded with every token.
      constants: read by the processor as `context.constants`: arrays with a leading axis P, of
        which a row sees the part of its prompt, or scalars. A change needs no compilation.
      record_top: number of most probable tokens to record for each sampled one, as
        `sampled_topk_logp` and `sampled_topk_ids`; 0: none.
      record_routes: the experts of each token are recorded, as `routes` and `prompt_routes`.
      beyond: prompts and responses together may exceed the positions of the model, for a caller
        that truncates each row to its budget.
    Returns:
      Rollouts of B = P · samples rows, group by group; outcome and reward are 0 until verified.
    Raises:
      ValueError: `opening` is not below the width of the prompts; `record_top` is above the
        vocabulary; `at_once` is not a multiple of the devices, or they do not sample independently;
        prompts that are not a table, or exceed the positions with their responses; invalid lengths,
        numbers, stop tokens or key; on the host, temperatures below 0; routes of a dense model.
    """
    key = checked_key("sample", key)
    if not isinstance(sampling, Sampling):
        raise ValueError(f"sample: sampling must be a Sampling, got {sampling!r}")
    check_each(Count, "sample", samples=samples, response_tokens=response_tokens)
    check_each(NonNegativeInt, "sample", record_top=record_top)
    vocabulary, positions = model.config.vocab_size, model.config.max_positions
    tokens = token_table("sample", "prompts.tokens", prompts.tokens, vocabulary, of="prompt")
    count, width = tokens.shape
    if width + response_tokens > positions and not beyond:
        raise ValueError(
            f"sample: response_tokens must be at most {positions - width} after prompts of {width}"
            f" for the {positions} positions of this model, got {response_tokens}"
        )
    check_opening(opening, width)
    options = products.compiler_options(model.config.compute_dtype)
    # Whatever is computed within a program is traced, also where all that is given is known.
    nested = options and isinstance(jnp.zeros(()), Tracer)
    draw = _drawing(tuple(options.items())) if options and not nested else draw_groups

    def number_of_each(name: str, least: int, *most: int) -> Int[Array, "P"]:
        return whole_numbers(
            "sample", f"prompts.{name}", getattr(prompts, name), count, least, *most, of="prompt"
        )

    checked = Prompts(
        tokens,
        number_of_each("length", 1, width),
        number_of_each("number", 0),
        number_of_each("first_sample", 0),
        temperatures("sample", prompts.temperature),
        prompts.soft_prompt,
        None if prompts.stop_state is None else number_of_each("stop_state", 0),
    )
    return draw(
        model,
        params,
        checked,
        key,
        samples=samples,
        response_tokens=response_tokens,
        sampling=sampling,
        stop_tokens=stop_ids("sample", stop_tokens),
        opening=opening,
        at_once=at_once,
        weight_version=weight_version,
        constants=constants,
        record_top=record_top,
        record_routes=record_routes,
    )


_STATIC = ("model", "samples", "response_tokens", "sampling", "opening", "at_once", "record_top")
_STATIC += ("record_routes",)


@partial(jax.jit, static_argnames=_STATIC)
def draw_groups(
    model: Model,
    params: Params,
    prompts: Prompts,
    key: jax.Array,
    *,
    samples: int,
    response_tokens: int,
    sampling: Sampling,
    stop_tokens: Int[Array, "S"],
    opening: int,
    at_once: int | None,
    weight_version: Int[Array, ""] | int,
    constants: Any,
    record_top: int,
    record_routes: bool,
) -> Rollouts:
    """The compiled part of `sample`, whose arguments are checked.

    Args:
      model: the policy.
      params: its weights.
      prompts: right-padded prompts, with their temperatures.
      key: of the call; each row derives its own.
      samples: responses of each prompt (N).
      response_tokens: largest number of tokens of a response (T).
      sampling: settings of the sampler.
      stop_tokens: ids that end a response.
      opening: number of tokens at the beginning of all prompts.
      at_once: rows that are computed at a time; None: all.
      weight_version: number that the rollouts record.
      constants: values of the processor that change from step to step.
      record_top: number of most probable tokens to record, per place.
      record_routes: True: the experts of each token are recorded.
    """
    count = prompts.tokens.shape[0]
    mesh = model.mesh
    alone = mesh is not None and mesh.shape["data"] == mesh.size and count % mesh.size == 0
    devices = mesh.size if mesh is not None and alone else 1
    if at_once is not None:
        if not (alone or mesh is None):
            raise ValueError(
                "sample: at_once must come with a mesh of only data whose devices divide the"
                f" prompts, got {dict(mesh.shape)} and {count} prompts"
            )
        if at_once < 1 or at_once % devices:
            raise ValueError(
                f"at_once must be a multiple of the {devices} devices, 1 or more, got {at_once}"
            )
    constants = jax.tree.map(jnp.asarray, constants)
    if prompts.temperature is not None:
        dtype = wide_dtype(model.config.compute_dtype)
        least = jnp.maximum(jnp.asarray(prompts.temperature, dtype), LEAST_TEMPERATURE)
        prompts = replace(prompts, temperature=jnp.broadcast_to(least, (count,)))
    draw = partial(
        _draw_groups,
        model=replace(model, mesh=None) if alone else model,
        samples=samples,
        response_tokens=response_tokens,
        sampling=sampling,
        opening=opening,
        at_once=at_once and at_once // devices,
        record_top=record_top,
        record_routes=record_routes,
    )
    if alone:
        row, whole = PartitionSpec(ROWS), PartitionSpec()
        specs = (whole, row, whole, whole, whole)
        specs += (jax.tree.map(lambda x: row if x.ndim else whole, constants),)
        draw = jax.shard_map(draw, mesh=mesh, in_specs=specs, out_specs=row, check_vma=False)
    rollouts = draw(
        params, prompts, key, stop_tokens, jnp.asarray(weight_version, jnp.int32), constants
    )
    rollouts = rollouts.replace(
        group=jnp.repeat(jnp.arange(count, dtype=jnp.int32), samples),
        rollout_id=jnp.arange(count * samples, dtype=jnp.int32),
    )
    return jax.tree.map(lambda leaf: split_rows(leaf, mesh), rollouts)


@cache
def _drawing(options: tuple[tuple[str, Any], ...]) -> Any:
    """`draw_groups` as a program of its own, with options of the compiler."""
    function = unwrap(draw_groups)
    return jax.jit(function, static_argnames=_STATIC, compiler_options=dict(options))


def _draw_groups(
    params,
    prompts,
    key,
    stop_tokens,
    weight_version,
    constants,
    *,
    model,
    samples,
    response_tokens,
    sampling,
    opening,
    at_once,
    record_top,
    record_routes,
) -> Rollouts:
    """The rollouts of the given prompts, groups and rows numbered among them."""
    count, width = prompts.tokens.shape
    # Rows that think softly are computed all: another's cache is not theirs with equal tokens.
    soft = sampling.soft is not None or prompts.soft_prompt is not None
    if at_once is not None and (soft or at_once >= count * samples):
        at_once = None
    new = partial(empty, model, slots=width, record_routes=record_routes)
    pool = _opening(model, params, prompts.tokens[:1, :opening], new) if opening else None
    read = partial(_read_prompts, model, params, opening, pool, new)
    if at_once is not None:
        # No more prompts together than there are rows for, as without `at_once`. The last part is
        # filled up with prompts of the first: a prime number of them would be read one by one.
        number = -(-count // max(at_once // samples, 1))
        order = jnp.arange(number * -(-count // number), dtype=jnp.int32) % count
        parts = order.reshape(number, -1)

        def read_some(rows):
            return read(replace(prompts, tokens=prompts.tokens[rows], length=prompts.length[rows]))

        pool = jax.lax.map(read_some, parts)
        pool = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[:count], pool)
    else:
        pool = read(prompts)
    # Prompts stay where they are: all rows of a group look at one copy. In a bitwise model each row
    # has its whole cache: a softmax over two parts is rounded otherwise than the scorer's.
    seen, whole = check_unshared(pool, "sample"), model.config.bitwise
    pool = widen(pool if whole else replace(pool, caches=()), width + response_tokens)
    if whole and at_once is not None:
        seen, pool = check_unshared(pool, "sample"), replace(pool, caches=())
    pool = replace(pool, limit=prompts.length + response_tokens, temperature=prompts.temperature)

    def copies(leaf):
        # Side by side, so that they stay on the device of their prompt: a fork would be a gather.
        return split_rows(jnp.repeat(leaf, samples, axis=0), model.mesh)

    pool = jax.tree.map(copies, pool)
    constants = jax.tree.map(lambda x: copies(x) if x.ndim else x, constants)
    keys = row_keys(key, prompts.number, samples, prompts.first_sample).reshape(-1)
    pool = replace(pool, key=split_rows(keys, model.mesh))
    stop_state = None if prompts.stop_state is None else copies(prompts.stop_state)
    if at_once is not None:
        unstacked = model.unstacked(params)
        how = Drawing(
            model, unstacked, sampling, stop_tokens, weight_version, constants, record_top
        )
        pool = decode_in_turn(how, pool, seen, at_once, response_tokens, stop_state)
    else:
        if not whole:
            shared = model.shared_caches(seen, pool.prompt_length, response_tokens)
            pool = replace(pool, caches=shared)
        pool = decode(
            model,
            params,
            pool,
            response_tokens,
            sampling,
            stop_tokens,
            weight_version=weight_version,
            constants=constants,
            record_top=record_top,
            stop_state=stop_state,
        )
    rollouts = to_rollouts(pool, copies(prompts.tokens), response_tokens, sampling)
    # Responses of one segment, sampled with one version of the weights, `weight_version`.
    return rollouts.replace(trace=None, version=None)


def _opening(model, params, tokens, new) -> Pool:
    """A pool of one row, with the tokens that all prompts begin with."""
    pool = new(rows=1)
    return prefill(model, params, pool, tokens, jnp.full((1,), tokens.shape[1], jnp.int32))


def _read_prompts(model, params, opening, opened, new, prompts) -> Pool:
    """A pool of the prompts, going on from a row with the tokens that they begin with, if any."""
    count, width = prompts.tokens.shape
    if opened is None:
        pool = new(rows=count)
    else:
        pool = jax.tree.map(
            lambda leaf: split_rows(jnp.repeat(leaf, count, axis=0), model.mesh), opened
        )
    soft = {}
    if prompts.soft_prompt is not None:
        number = prompts.soft_prompt.shape[1]
        places = jnp.broadcast_to(jnp.arange(width)[None] < number, prompts.tokens.shape)
        padded = jnp.pad(prompts.soft_prompt, ((0, 0), (0, width - number), (0, 0)))
        soft = {"embeddings": padded, "embedded": places}
    tokens, given = prompts.tokens[:, opening:], prompts.length - opening
    pool = prefill(model, params, pool, tokens, given, **soft)
    return replace(pool, prompt_length=prompts.length)
