"""Products of arrays with the precision of their operands on every platform.

Accelerators round float32 operands to fewer bits by default: a GPU to TensorFloat-32, a TPU to
bfloat16. The log-probs of sampler and scorer would then differ by 1e-3, although the ratio of their
probabilities should be 1. For speed, use `compute_dtype="bfloat16"`.

XLA has bfloat16 products on a CPU only with float32 results and without a transposed matrix. For
any other product it converts both matrices to float32, at every use. So products here have float32
results, and gradients transpose a matrix in memory first.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.megablox.gmm import gmm, tgmm
from jax.sharding import Mesh
from jaxtyping import Array, Float, Int

from rlvr_jax.kernels.tiles import transposed
from rlvr_jax.policy.layout import on_tpu, platform


def compiler_options(dtype: str, mesh: Mesh | None = None) -> dict[str, bool | int | str] | None:
    """Returns options of `jax.jit` for products of this dtype on this mesh. They are for the
    outermost compiled function, since JAX accepts none within another.

    On a TPU, XLA may split a product with a sum over `tensor` by devices, to overlap communication
    and multiplication. Its estimate is then longer: 36 s instead of 21 s to score with Qwen2.5-32B
    on a v5e-256 with tensor=8 (libtpu 0.0.42.1, 2026-11-28).

    On a GPU, XLA tries dozens of Triton kernels for every product. In float32 each takes seconds to
    compile: the first step of the quickstart took 38.5 s with them and 9.7 s without. Later steps
    took equal times (H200, jax 0.11.2, 2026-11-27). In bfloat16 they compile fast, and sampling
    needs them (docs/speed.md).

    On a CPU, XLA converts bfloat16 arrays to float32 before it writes, slices or reorders them. A
    loop over layers or tokens then converts a whole stack or cache in each round. Without that pass
    it does not. But a product with a bfloat16 result is then an internal error of XLA, so convert
    hidden states first.
    """
    if mesh is not None and on_tpu(mesh) and mesh.shape["tensor"] > 1:
        return {"xla_jf_spmd_threshold_for_windowed_einsum_mib": 2**20}
    if platform(mesh) == "gpu" and dtype != "bfloat16":
        return {"xla_gpu_enable_triton_gemm": False}
    if narrow_on_cpu(dtype, mesh):
        return {"xla_disable_hlo_passes": "float-normalization-bf16"}
    return None


def narrow_on_cpu(dtype: str, mesh: Mesh | None = None) -> bool:
    """Whether products are those of a CPU in bfloat16, for which other forms are faster."""
    return dtype == "bfloat16" and platform(mesh) == "cpu"


def einsum(
    subscripts: str, *operands: Float[Array, "..."], preferred_element_type: Any = None
) -> Float[Array, "..."]:
    """`jnp.einsum` in the precision of its operands."""
    precision = _precision(*operands)
    if preferred_element_type is None and _narrow_on_cpu(*operands):
        wide = jnp.einsum(subscripts, *operands, preferred_element_type=jnp.float32)
        return wide.astype(jnp.bfloat16)
    return jnp.einsum(
        subscripts, *operands, precision=precision, preferred_element_type=preferred_element_type
    )


def matmul(left: Float[Array, "N D"], right: Float[Array, "D E"]) -> Float[Array, "N E"]:
    """`left @ right` in the precision of its operands."""
    if _narrow_on_cpu(left, right):
        return _narrow(left, right)
    return jnp.matmul(left, right, precision=_precision(left, right))


def ragged_dot(
    rows: Float[Array, "N D"],
    matrices: Float[Array, "G D E"],
    sizes: Int[Array, "g"],
    tpu: bool = False,
) -> Float[Array, "N E"]:
    """`jax.lax.ragged_dot` in the precision of its operands.

    Args:
      rows: sorted by group.
      matrices: one per group.
      sizes: numbers of rows, N together. Rows of groups without a matrix, g - G of them at the end,
        become anything.
      tpu: it runs on one. In bfloat16 gradients are then of MegaBlocks' kernels. Of matrices libtpu
        (0.0.42.1) has none: it multiplies all rows by every matrix. Of rows it has one, but writes
        all matrices in another order first, 11 to 29 % of its estimate of qwen3-30b-a3b's update.
    """
    if not tpu and _narrow_on_cpu(rows, matrices):
        wide = ragged_dot(rows.astype(jnp.float32), matrices.astype(jnp.float32), sizes)
        return wide.astype(jnp.bfloat16)
    precision = _precision(rows, matrices)
    narrow = precision is None and not jax.enable_x64.value  # the kernel counts in 32 bits
    if tpu and narrow and _tile_of(rows.shape[0]):
        return _ragged_dot(rows, matrices, sizes)
    own = sizes[: matrices.shape[0]]
    return jax.lax.ragged_dot(rows, matrices, own, precision=precision)


def gradient_of_rows(
    slope: Float[Array, "N E"],
    matrices: Float[Array, "G D E"],
    sizes: Int[Array, "g"],
    interpret: bool = False,
) -> Float[Array, "N D"]:
    """Of rows of group i, slope matrices[i]ᵀ: the gradient of the rows of `ragged_dot`, on a TPU.
    Rows of groups without a matrix become anything.

    Args:
      slope: gradient of the result.
      matrices: one per group.
      sizes: numbers of rows of the groups.
      interpret: True: runs without a TPU, for tests.

    Source: MegaBlocks, https://arxiv.org/abs/2211.15841; the kernel is JAX's.
    """
    options = dict(tiling=_tiling(slope.shape[0], *matrices.shape[:0:-1]), interpret=interpret)
    with jax.numpy_dtype_promotion("standard"):  # it adds numbers of several types
        own = sizes[: matrices.shape[0]]
        return gmm(slope, matrices, own, slope.dtype, transpose_rhs=True, **options)


def gradient_of_matrices(
    rows: Float[Array, "N D"],
    slope: Float[Array, "N E"],
    sizes: Int[Array, "g"],
    number: int,
    interpret: bool = False,
) -> Float[Array, "G D E"]:
    """Of each of the first `number` groups of rows, rowsᵀ slope: the gradient of the matrices of
    `ragged_dot`, on a TPU.

    Args:
      rows: sorted by group.
      slope: gradient of the result.
      sizes: numbers of rows of the groups.
      number: G, groups with a matrix.
      interpret: True: runs without a TPU, for tests.

    Source: MegaBlocks, https://arxiv.org/abs/2211.15841; the kernel is JAX's.
    """
    tiling = _tiling(rows.shape[0], rows.shape[1], slope.shape[1])
    options = dict(tiling=tiling, num_actual_groups=number, interpret=interpret)
    with jax.numpy_dtype_promotion("standard"):  # it adds numbers of several types
        return tgmm(rows.swapaxes(0, 1), slope, sizes, rows.dtype, **options)


def _tiling(rows: int, *sizes: int) -> tuple[int, ...]:
    """Sizes of blocks; the last one of an axis may be narrower. One of the result is in VMEM."""
    return _tile_of(rows), *(size if size < 1024 else 512 for size in sizes)


def _tile_of(number: int) -> int:
    """Number of rows that the kernels of gradients multiply at once, a divisor of all rows; 0: none
    does that a TPU takes."""
    return next((tile for tile in (512, 256, 128) if number % tile == 0), 0)


@jax.custom_vjp
def _ragged_dot(rows, matrices, sizes):
    return jax.lax.ragged_dot(rows, matrices, sizes[: matrices.shape[0]])


def _forward(rows, matrices, sizes):
    return _ragged_dot(rows, matrices, sizes), (rows, matrices, sizes)


def _backward(residuals, slope):
    rows, matrices, sizes = residuals
    of_matrices = gradient_of_matrices(rows, slope, sizes, matrices.shape[0])
    return gradient_of_rows(slope, matrices, sizes), of_matrices, None


_ragged_dot.defvjp(_forward, _backward)


@jax.custom_vjp
def _narrow(left, right):
    """The product of bfloat16 matrices on a CPU."""
    return jnp.matmul(left, right, preferred_element_type=jnp.float32).astype(jnp.bfloat16)


def _narrow_backward(residuals, slope):
    left, right = residuals
    return _narrow(slope, transposed(right)), _narrow(transposed(left), slope)


_narrow.defvjp(lambda left, right: (_narrow(left, right), (left, right)), _narrow_backward)


def _narrow_on_cpu(*operands: Array) -> bool:
    return _are_narrow(*operands) and narrow_on_cpu("bfloat16")


def _precision(*operands: Array) -> jax.lax.Precision | None:
    """Precision of a product; bfloat16 operands have exact products in any case."""
    return None if _are_narrow(*operands) else jax.lax.Precision.HIGHEST


def _are_narrow(*operands: Array) -> bool:
    return all(each.dtype == jnp.bfloat16 for each in operands)
