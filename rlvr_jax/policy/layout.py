"""Activations on a mesh: rows are split over data and fsdp, heads and the stream over tensor.

Parameters bring their own shardings, and the partitioner would follow them: the stream split by its
width, its rows gathered. These constraints fix the sharding; on one device they do nothing.
"""

import math

import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from rlvr_jax.kernels.tpu_blocks import device

ROWS = ("data", "fsdp")
"""Mesh axes over which rows (rollouts, prompts, sequences) are split."""

HEADS = ("tensor",)
"""Mesh axes over which attention heads are split."""

WIDTH = HEADS
"""Mesh axes over which the width of the stream is split between the products of a layer."""


def constrain(x: jax.Array, mesh: Mesh | None, *axes: tuple[str, ...]) -> jax.Array:
    """`x` split over mesh axes, one tuple of them for each axis of `x`; the others are whole.

    An axis that the mesh axes do not divide also stays whole: all devices compute all of it.
    """
    if mesh is None or mesh.size == 1:
        return x
    return jax.lax.with_sharding_constraint(x, _sharding(x, mesh, axes, None))


def platform(mesh: Mesh | None) -> str:
    """The platform of a mesh, or without one that of the devices that are traced for."""
    return device()[0] if mesh is None else mesh.devices.flat[0].platform


def on_tpu(mesh: Mesh | None) -> bool:
    """Whether the devices of `platform` are TPUs."""
    return platform(mesh) == "tpu"


def split_rows(x: jax.Array, mesh: Mesh | None) -> jax.Array:
    """`x` with its first axis over `ROWS`; how the others lie is left to the partitioner."""
    if mesh is None or mesh.size == 1:
        return x
    return jax.lax.with_sharding_constraint(
        x, _sharding(x, mesh, (ROWS,), PartitionSpec.UNCONSTRAINED)
    )


def partition(x: jax.Array, mesh: Mesh, *axes: tuple[str, ...]) -> PartitionSpec:
    """The split of `x` by `constrain`, for `jax.shard_map`."""
    return _sharding(x, mesh, axes[: x.ndim], None).spec


def _sharding(x, mesh, axes, others):
    spec = [others] * x.ndim
    for index, names in enumerate(axes):
        parts = math.prod(mesh.shape[name] for name in names)
        spec[index] = names if names and x.shape[index] % parts == 0 else None
    return NamedSharding(mesh, PartitionSpec(*spec))
