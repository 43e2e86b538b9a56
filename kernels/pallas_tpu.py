"""Token statistics on TPU: a Mosaic kernel for the sums, forward only.

The tile of logits is transposed, z [v, n] = W h^T, with tokens on lanes. Sums over the vocabulary
run down the sublanes and the vector registers, never across lanes. The kernel does not add the
eight sublanes of a register. It has eight sets of sums per token, each over every eighth entry,
which `algebra.merge` merges outside.

    grid: blocks of tokens (in any order) x pairs of vocabulary tiles (in order)
    step j:  left  = W[2j] h^T        while right, the last tile of step j - 1, is absorbed
             right = W[2j + 1] h^T    while left is absorbed

The vector units work on one tile while the matrix units compute the next one. The tiles are two
arrays, not two halves of one. With a variable index, the compiler cannot prove that a write to one
half and a read of the other do not overlap. No logit is masked. The remainder of the
vocabulary after the pairs is copied, padded, and goes through the kernel once more, in one pair of
smaller tiles. Lanes past the last token have arbitrary values, since no lane reads another one.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from rlvr_jax.kernels import algebra, tiles, tpu_blocks
from rlvr_jax.kernels.plan import Plan, Policy, Tokens

SUBLANES, _LANES = 8, 128
# Block indices are int32 for Mosaic; a Python 0 is not where 64-bit numbers are enabled.
_ZERO = np.int32(0)
# Logits that are absorbed together: few enough for registers, and so many that rescaling the sums
# to a new largest logit does not count.
ROWS, _COLUMNS = 128, 256


def obstacle(plan: Plan, policy: Policy) -> str | None:
    """The reason why the kernel cannot run on the device that is traced for; None if it can."""
    platform, kind = tpu_blocks.device()
    if platform != "tpu":
        return f"it needs a TPU, the device is {kind!r}"
    hidden, unembedding = policy.hidden, policy.unembedding
    if hidden.dtype != unembedding.dtype or hidden.dtype not in (jnp.bfloat16, jnp.float32):
        return (
            "hidden and unembedding must both be bfloat16 or both float32, got"
            f" {hidden.dtype} and {unembedding.dtype}"
        )
    vocabulary_size, width = unembedding.shape
    if width % _LANES:
        return f"the width D must be a multiple of {_LANES}, got {width}"
    blocks = tpu_blocks.fit(kind, width, hidden.dtype.itemsize)
    if blocks is None:
        return f"no block of width D = {width} fits into the VMEM of {kind!r}"
    if vocabulary_size < 2 * blocks.vocabulary:
        return f"a device must have {2 * blocks.vocabulary} entries, got {vocabulary_size}"
    return None


def sums(plan: Plan, policy: Policy, tokens: Tokens) -> algebra.Sums:
    """As `dispatch.sums`; sums of tokens that are not active are 0."""
    size, width = policy.hidden.shape
    if size == 0:
        return algebra.start(plan.needs, 0, plan.dtype, tokens.second_ratio)
    blocks = tpu_blocks.fit(tpu_blocks.device()[1], width, policy.hidden.dtype.itemsize)
    blocks = blocks._replace(tokens=min(blocks.tokens, -(-size // _LANES) * _LANES))
    if tokens.active is None and size >= blocks.tokens:
        return _sums(plan, blocks, policy, tokens, pl.cdiv(size, blocks.tokens))
    rows = tiles.active_first(tokens.active, size, blocks.tokens)
    packed = policy._replace(hidden=tiles.take(rows, policy.hidden))
    tokens = tiles.take_tokens(rows, tokens)
    return tiles.put_back(rows, _sums(plan, blocks, packed, tokens, rows.num_tiles))


def _sums(plan, blocks, policy, tokens, num_blocks):
    """Sums of the tokens in the first `num_blocks` blocks; the others are undefined."""
    vocabulary_size = policy.unembedding.shape[0]
    # A target past the end must not be met in the rows that fill up the rest.
    inside = jnp.where(tokens.targets < vocabulary_size, tokens.targets, -1)
    tokens = tokens._replace(targets=inside)
    num_pairs = vocabulary_size // (2 * blocks.vocabulary)
    eight = _kernel_sums(plan, blocks, policy, tokens, (num_blocks, num_pairs))
    first = num_pairs * 2 * blocks.vocabulary
    if first < vocabulary_size:
        rest = policy._replace(unembedding=policy.unembedding[first:])
        rest = rest._replace(bias=None if policy.bias is None else policy.bias[first:])
        tile = pl.cdiv(vocabulary_size - first, 2 * ROWS) * ROWS
        tokens = tokens._replace(targets=tokens.targets - first)
        blocks, rest = blocks._replace(vocabulary=tile), _filled_up(rest, 2 * tile)
        more = _kernel_sums(plan, blocks, rest, tokens, (num_blocks, 1))
        if more.max_id is not None:
            more = more._replace(max_id=more.max_id + first // SUBLANES)
        eight = algebra.merge(eight, more)
    return tiles.tile_of(_merge_sublanes(eight), 0, policy.hidden.shape[0])


def _filled_up(policy, vocabulary_size):
    """The policy with entries up to this size that a bias of -inf takes out."""
    missing = vocabulary_size - policy.unembedding.shape[0]
    if missing == 0:
        return policy
    bias = policy.bias
    if bias is None:
        bias = jnp.zeros(policy.unembedding.shape[0], jnp.float32)
    return policy._replace(
        unembedding=jnp.pad(policy.unembedding, ((0, missing), (0, 0))),
        bias=jnp.pad(bias, (0, missing), constant_values=-jnp.inf),
    )


def _kernel_sums(plan, blocks, policy, tokens, grid):
    """Eight sums per token over the pairs of vocabulary tiles of the grid, [8, N], N in blocks."""
    (size, width), tile = policy.hidden.shape, blocks.vocabulary
    by_token = pl.BlockSpec((1, blocks.tokens), lambda i, j: (_ZERO, i))
    inputs = {
        "hidden": (policy.hidden, pl.BlockSpec((blocks.tokens, width), lambda i, j: (i, _ZERO))),
        "unembedding": (
            policy.unembedding,
            pl.BlockSpec((2 * tile, width), lambda i, j: (j, _ZERO)),
        ),
        "target": (tokens.targets[None, :], by_token),
    }
    if policy.bias is not None:
        bias = policy.bias.astype(jnp.float32)[None, :]
        inputs["bias"] = bias, pl.BlockSpec((1, 2 * tile), lambda i, j: (_ZERO, j))
    if tokens.inverse_temperature is not None:
        inputs["inverse_temperature"] = tokens.inverse_temperature[None, :], by_token
    if tokens.second_ratio is not None:
        inputs["second_ratio"] = tokens.second_ratio[None, :], by_token
    arrays, in_specs = zip(*inputs.values(), strict=True)

    padded = pl.cdiv(size, blocks.tokens) * blocks.tokens
    ratio = None if tokens.second_ratio is None else jnp.float32(1)
    like = jax.eval_shape(partial(_start, plan, padded), ratio)
    out_shape, structure = jax.tree.flatten(like)

    def kernel(*refs):
        *refs, left, right = refs
        named = dict(zip(inputs, refs, strict=False))
        outputs = jax.tree.unflatten(structure, refs[len(inputs) :])
        _step(plan, named, outputs, left, right)

    eight = pl.pallas_call(
        kernel,
        grid=grid,
        in_specs=in_specs,
        out_specs=[pl.BlockSpec((SUBLANES, blocks.tokens), lambda i, j: (_ZERO, i))]
        * len(out_shape),
        out_shape=out_shape,
        scratch_shapes=[pltpu.VMEM((tile, blocks.tokens), jnp.float32)] * 2,
        compiler_params=pltpu.CompilerParams(
            dimension_semantics=("parallel", "arbitrary"), vmem_limit_bytes=blocks.vmem_limit
        ),
        name="token_stats",
    )(*arrays)
    return jax.tree.unflatten(structure, eight)


def _start(plan, size, second_ratio):
    """Empty sums [8, size]; second_ratio is of any shape that broadcasts to that."""
    shape = SUBLANES, size
    if second_ratio is not None:
        second_ratio = jnp.broadcast_to(second_ratio, shape)
    return algebra.start(plan.needs, shape, jnp.float32, second_ratio)


def _step(plan, inputs, outputs, left, right):
    """A step of the grid: two tiles are made; the first and the one before them are absorbed."""
    (tile, block), step = left.shape, pl.program_id(1)
    first = step * (2 * tile)

    @pl.when(step == 0)
    def _():
        ratio = inputs["second_ratio"][...] if "second_ratio" in inputs else None
        jax.tree.map(_store, outputs, _start(plan, block, ratio))
        right[...] = jnp.zeros_like(right)  # absorbed and thrown away, but it must not be NaN

    left[...] = _logits(plan, inputs, pl.ds(0, tile))
    _absorb(outputs, right, inputs["target"], first - tile, is_real=step > 0)
    right[...] = _logits(plan, inputs, pl.ds(tile, tile))
    _absorb(outputs, left, inputs["target"], first)

    @pl.when(step == pl.num_programs(1) - 1)
    def _():
        _absorb(outputs, right, inputs["target"], first + tile)


def _logits(plan, inputs, entries):
    """Logits [tile, block] of these entries of the step's pair of tiles."""
    operands = inputs["unembedding"][entries, :], inputs["hidden"][...]
    logits = tiles.product(plan, *operands, (1, 1))
    if "bias" in inputs:
        row = jnp.broadcast_to(inputs["bias"][:, entries], (_LANES, logits.shape[0]))
        logits = logits + jnp.concatenate([row.T] * (logits.shape[1] // _LANES), axis=1)
    logits, _ = algebra.logits_and_slope(logits, None, plan.softcap, None)
    if "inverse_temperature" in inputs:
        logits = logits * inputs["inverse_temperature"][...]
    return logits


def _absorb(outputs, logits, target, first, is_real=None):
    """Adds a tile whose first entry is `first`, unless `is_real` says that there is none."""
    tile, block = logits.shape
    for start in range(0, block, _COLUMNS):
        columns = pl.ds(start, min(_COLUMNS, block - start))
        before = jax.tree.map(lambda ref, at=columns: ref[:, at], outputs)
        after = before
        for row in range(0, tile, ROWS):
            part, at = logits[pl.ds(row, ROWS), columns], first + row
            after = _update(after, part, target[:, columns] - at, at)
        if is_real is not None:
            # A select and not a branch, across which the compiler would not overlap.
            after = jax.tree.map(partial(jnp.where, is_real), after, before)
        jax.tree.map(partial(_store, columns=columns), outputs, after)


def _update(sums, logits, target, first):
    """Adds logits [v, n] to eight sums a token; target [1, n] is a row of them or outside."""
    size, width = logits.shape
    eighths = logits.reshape(size // SUBLANES, SUBLANES, width)
    picked = None
    if sums.target is not None:
        entries = SUBLANES * jax.lax.broadcasted_iota(jnp.int32, eighths.shape, 0)
        wanted = target - jax.lax.broadcasted_iota(jnp.int32, (SUBLANES, width), 0)
        picked = jnp.sum(jnp.where(entries == wanted[None], eighths, 0), axis=0)
    return algebra.update(sums, eighths, picked, first // SUBLANES, axis=0)


def _store(ref, value, columns=slice(None)):
    ref[:, columns] = value


def _merge_sublanes(eight):
    """Joins the eight sums of each token: from [8, N] to [N]."""
    if eight.max_id is not None:  # counted in eights so far
        sublane = jnp.arange(SUBLANES, dtype=jnp.int32)[:, None]
        eight = eight._replace(max_id=SUBLANES * eight.max_id + sublane)
    return algebra.merge_parts(eight)
