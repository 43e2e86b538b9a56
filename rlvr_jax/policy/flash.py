"""Causal attention on TPU with scores that stay on the chip: the splash kernel of JAX.

The kernel computes the scores of a block of queries and a block of keys on the chip, in float32. It
skips blocks without a visible key. Its backward pass computes the scores again. The compiler does
not partition Mosaic kernels, so every device of a mesh calls it on its rows and heads. The idea is
that of Dao et al. 2022, https://arxiv.org/abs/2205.14135.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.splash_attention import (
    BlockSizes,
    CausalMask,
    MultiHeadMask,
    SegmentIds,
    make_splash_mqa,
)
from jax.sharding import Mesh
from jaxtyping import Array, Bool, Float

from rlvr_jax.kernels.dispatch import warn_once
from rlvr_jax.policy.config import ModelConfig
from rlvr_jax.policy.layout import HEADS, ROWS, on_tpu, partition

BLOCK = 1024
"""Most queries and most keys of a block in bfloat16; half as many in float32, for v4's 16 MiB."""

LEAST = 512
"""Fewest queries that are the kernel's: below, a block is smaller than the matrix units like."""

_LANES = 128
_DTYPES = ("bfloat16", "float32")


def flash_serves(config: ModelConfig, queries: int, mesh: Mesh | None) -> bool:
    """Whether the kernel computes the attention of so many queries in order, without a cache.

    The conditions are a TPU, bfloat16 or float32, at least `LEAST` queries, and a model without
    sliding windows. The kernel measures a window along the array, which differs from the distance
    of positions after a padded prompt. With 64-bit numbers in JAX, Mosaic refuses the indices of
    the kernel. If a long sequence on a TPU does not use the kernel, the reason is printed once.
    """
    if not on_tpu(mesh) or queries < LEAST:
        return False
    obstacles = {
        f"compute_dtype {config.compute_dtype}": config.compute_dtype not in _DTYPES,
        "sliding windows": bool(config.sliding_layers),
        "64-bit numbers": jnp.result_type(int) == jnp.int64,
    }
    for obstacle, found in obstacles.items():
        if found:
            warn_once(f"attention: 'xla' runs instead of the flash kernel: {obstacle}")
            return False
    return True


def flash_pairs(queries: int, keys: int) -> int:
    """Pairs of a query and a key in the blocks that the kernel runs in bfloat16, for each head."""
    rows, columns = _block(queries, BLOCK), _block(keys, BLOCK)
    ends = range(keys - queries + rows, keys + rows, rows)
    return sum(-(-min(end, keys) // columns) for end in ends) * rows * columns


def flash_attention(
    query: Float[Array, "B S N H"],
    key: Float[Array, "B T K H"],
    value: Float[Array, "B T K H"],
    visible: Bool[Array, "b T"],
    scalar: float,
    mesh: Mesh | None,
) -> Float[Array, "B S NH"]:
    """softmax(query · key / √scalar) · value over visible keys that are not later than the query.

    The queries belong to the last S of the T keys. One that sees no key at all gets what means
    nothing but is finite.

    Args:
      query: bfloat16 or float32, like key and value. The N heads share the K key/value heads in
        equal groups.
      key, value: of all T tokens.
      visible: False for padding.
      scalar: number whose root divides the scores.
      mesh: rows are split over data and fsdp, heads over tensor, if they divide. None: one device.
    """
    batch, length, heads, size = query.shape
    visible = jnp.broadcast_to(visible, (batch, key.shape[1]))
    wide = query.astype(jnp.float32) / jnp.sqrt(jnp.float32(scalar))
    operands = wide.astype(query.dtype), key, value, visible
    if mesh is None or mesh.size == 1:
        y = _local(*operands)
    else:
        if heads % mesh.shape["tensor"] == 0 and key.shape[2] % mesh.shape["tensor"]:
            # A device's query heads may not make up whole groups: each brings its own keys.
            key, value = (jnp.repeat(x, heads // x.shape[2], axis=2) for x in (key, value))
            operands = operands[0], key, value, visible
        specs = tuple(partition(x, mesh, ROWS, (), HEADS) for x in operands)
        y = jax.shard_map(_local, mesh=mesh, in_specs=specs, out_specs=specs[0], check_vma=False)(
            *operands
        )
    return y.reshape(batch, length, heads * size)


def _local(query, key, value, visible):
    """The attention of a device's rows and heads, with queries divided by √scalar."""
    (batch, length, heads, size), (_, keys, kv_heads, _) = query.shape, key.shape
    most = BLOCK * jnp.dtype(jnp.bfloat16).itemsize // query.dtype.itemsize
    rows, columns = _block(length, most), _block(keys, most)
    query, key, value = (
        _filled(x, n) for x, n in ((query, rows), (key, columns), (value, columns))
    )
    visible = _filled(visible, columns)
    mask = CausalMask((query.shape[1], key.shape[1]), offset=keys - length)
    kernel = make_splash_mqa(
        MultiHeadMask([mask] * (heads // kv_heads)),
        block_sizes=BlockSizes(
            block_q=rows,
            block_kv=columns,
            block_q_dkv=rows,
            block_kv_dkv=columns,
            block_q_dq=rows,
            block_kv_dq=columns,
        ),
        head_shards=1,
        q_seq_shards=1,
    )
    # A call is one row's one key/value head: queries [G, S, H], keys and values [T, H].
    query = query.reshape(batch, -1, kv_heads, heads // kv_heads, size).transpose(0, 2, 3, 1, 4)
    key, value = (x.transpose(0, 2, 1, 3) for x in (key, value))
    seen = SegmentIds(jnp.ones(query.shape[3], jnp.int32), visible.astype(jnp.int32))
    each = jax.vmap(kernel, in_axes=(0, 0, 0, None))
    # Residuals are returned only where they are requested.
    y: Any = jax.vmap(each, in_axes=(0, 0, 0, seen._replace(q=None, kv=0)))(query, key, value, seen)
    return y.transpose(0, 3, 1, 2, 4)[:, :length].reshape(batch, length, heads, size)


def _block(length: int, most: int) -> int:
    """Size of the fewest blocks of whole lanes into which so many tokens are split."""
    blocks = -(-length // most)
    return -(-length // (blocks * _LANES)) * _LANES


def _filled(x, block):
    """`x` with zeros at the end of its second axis, up to whole blocks."""
    missing = -x.shape[1] % block
    return jnp.pad(x, ((0, 0), (0, missing), *((0, 0),) * (x.ndim - 2)))
