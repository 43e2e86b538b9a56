"""Token statistics on GPU: a Triton kernel for the sums, forward only, on request.

A Triton program has a block of tokens and a part of the vocabulary. It walks the part in tiles and
holds the sums in registers. `algebra.merge` merges the parts outside. The programs of a GPU run in
any order, so nothing is accumulated over an axis of the grid. A body written for TPU would compile
here and race. The parts depend only on the size of the vocabulary, so a token's bits do not depend
on the number of tokens.

    grid: parts x blocks of tokens; neighbours share hidden states, which then stay in L2
    tile: z [n, v] = Σ h [n, d] w [v, d]^T over chunks of the width, then one update of the sums
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu

from rlvr_jax.kernels import algebra, tiles, tpu_blocks
from rlvr_jax.kernels.plan import Plan, Policy, Tokens

TOKENS = 128
# (entries of a tile, chunk of the width): the largest that spill no register, on sm_90 with all
# statistics, on sm_80 with five (bfloat16) of them; 3 stages take 96 KiB of shared memory or less.
TILES = {jnp.dtype(jnp.bfloat16): (128, 64), jnp.dtype(jnp.float32): (64, 32)}
_NUM_WARPS, _NUM_STAGES = 8, 3
# So many that a thousand tokens already occupy a GPU of 132 multiprocessors.
MOST_PARTS = 16
# Offsets into arrays are int32.
_MOST_ELEMENTS = 2**31


def obstacle(plan: Plan, policy: Policy) -> str | None:
    """The reason why the kernel cannot run on the device that is traced for; None if it can."""
    del plan
    platform, kind = tpu_blocks.device()
    if platform not in ("gpu", "cuda"):
        return f"it needs an NVIDIA GPU, the device is {kind!r}"
    hidden, unembedding = policy.hidden, policy.unembedding
    if hidden.dtype != unembedding.dtype or hidden.dtype not in TILES:
        return (
            "hidden and unembedding must both be bfloat16 or both float32, got"
            f" {hidden.dtype} and {unembedding.dtype}"
        )
    _, chunk = TILES[hidden.dtype]
    if hidden.shape[1] % chunk:
        return f"the width D must be a multiple of {chunk}, got {hidden.shape[1]}"
    for name, array in (("hidden", hidden), ("unembedding", unembedding)):
        if array.size >= _MOST_ELEMENTS:
            return f"{name} must have less than 2^31 elements, got {array.shape}"
    return None


def sums(plan: Plan, policy: Policy, tokens: Tokens) -> algebra.Sums:
    """As `dispatch.sums`; sums of tokens that are not active are 0."""
    size = policy.hidden.shape[0]
    if size == 0:
        return algebra.start(plan.needs, 0, plan.dtype, tokens.second_ratio)
    rows = tiles.active_first(tokens.active, size, TOKENS)
    if tokens.active is not None:  # else it may end inside a block: no copy to fill it up
        policy = policy._replace(hidden=tiles.take(rows, policy.hidden))
    parts = _kernel_sums(plan, policy, tiles.take_tokens(rows, tokens), rows.num_tiles)
    return tiles.put_back(rows, algebra.merge_parts(parts))


def _kernel_sums(plan, policy, tokens, num_blocks):
    """Sums of each part of the vocabulary, [parts, N], N in blocks.

    Args:
      policy: its hidden states may end inside a block, all else of the tokens does not.
      num_blocks: blocks that hold active tokens; the sums of the others hold no entry.
    """
    padded = tokens.targets.shape[0]
    tile, _ = TILES[policy.unembedding.dtype]
    num_tiles = pl.cdiv(policy.unembedding.shape[0], tile)
    num_parts = 1
    while 2 * num_parts <= min(MOST_PARTS, num_tiles):
        num_parts *= 2
    inputs = {
        "hidden": policy.hidden,
        "unembedding": policy.unembedding,
        "bias": policy.bias,
        "num_blocks": num_blocks.reshape(1),
        "target": tokens.targets,
        "inverse_temperature": tokens.inverse_temperature,
        "second_ratio": tokens.second_ratio,
    }
    inputs = {name: x for name, x in inputs.items() if x is not None}
    ratio = None if tokens.second_ratio is None else jnp.float32(1)
    like = jax.eval_shape(partial(_start, plan, (num_parts, padded)), ratio)
    out_shape, structure = jax.tree.flatten(like)

    def kernel(*refs):
        named = dict(zip(inputs, refs, strict=False))
        outputs = jax.tree.unflatten(structure, refs[len(inputs) :])
        _part_sums(plan, named, outputs, pl.cdiv(num_tiles, num_parts), num_tiles)

    parts = pl.pallas_call(
        kernel,
        grid=(num_parts, padded // TOKENS),
        out_shape=out_shape,
        compiler_params=plgpu.CompilerParams(num_warps=_NUM_WARPS, num_stages=_NUM_STAGES),
        name="token_stats",
    )(*inputs.values())
    return jax.tree.unflatten(structure, parts)


def _start(plan, shape, second_ratio):
    """Empty sums of this shape; second_ratio is of any shape that broadcasts to it."""
    if second_ratio is not None:
        second_ratio = jnp.broadcast_to(second_ratio, shape)
    return algebra.start(plan.needs, shape, jnp.float32, second_ratio)


def _part_sums(plan, inputs, outputs, tiles_per_part, num_tiles):
    """A program: the sums of a block of tokens over a part of the vocabulary."""
    part, block = pl.program_id(0), pl.program_id(1)
    rows = pl.ds(block * TOKENS, TOKENS)
    known = {
        name: inputs[name][rows] if name in inputs else None
        for name in ("target", "inverse_temperature", "second_ratio")
    }
    first = part * tiles_per_part
    last = jnp.minimum(first + tiles_per_part, num_tiles)
    last = jnp.where(block < inputs["num_blocks"][0], last, first)

    def over_tiles(index, sums):
        start = index * TILES[inputs["unembedding"].dtype][0]
        logits = _logits(plan, inputs, rows, start, known["inverse_temperature"])
        picked = None
        if sums.target is not None:
            entries = jax.lax.broadcasted_iota(jnp.int32, logits.shape, 1)
            is_target = entries == (known["target"] - start)[:, None]
            picked = jnp.sum(jnp.where(is_target, logits, 0), axis=1)
        return algebra.update(sums, logits, picked, start)

    empty = _start(plan, (TOKENS,), known["second_ratio"])
    full = jax.lax.fori_loop(first, last, over_tiles, empty)
    jax.tree.map(partial(_store, part=part, rows=rows), outputs, full)


def _logits(plan, inputs, rows, start, inverse_temperature):
    """Logits of a tile, -inf in entries past the end of the vocabulary."""
    hidden, unembedding = inputs["hidden"], inputs["unembedding"]
    tile, width = TILES[unembedding.dtype]
    entries = pl.ds(start, tile)
    token = rows.start + jnp.arange(TOKENS, dtype=jnp.int32)
    entry = start + jnp.arange(tile, dtype=jnp.int32)
    token_exists, entry_exists = token < hidden.shape[0], entry < unembedding.shape[0]

    def over_width(index, products):
        chunk = pl.ds(index * width, width)
        h = plgpu.load(hidden.at[rows, chunk], mask=token_exists[:, None], other=0)
        w = plgpu.load(unembedding.at[entries, chunk], mask=entry_exists[:, None], other=0)
        return products + tiles.product(plan, h, w, (1, 1))

    products = jnp.zeros((TOKENS, tile), jnp.float32)
    products = jax.lax.fori_loop(0, hidden.shape[1] // width, over_width, products)
    if "bias" in inputs:
        bias = plgpu.load(inputs["bias"].at[entries], mask=entry_exists, other=-jnp.inf)
    else:
        bias = jnp.where(entry_exists, jnp.float32(0), -jnp.inf)
    return algebra.logits_and_slope(products, bias, plan.softcap, inverse_temperature)[0]


def _store(ref, value, part, rows):
    ref[part, rows] = value
