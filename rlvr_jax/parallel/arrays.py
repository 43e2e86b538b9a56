"""Copies between host memory and global arrays: inputs and results of every process.

A global array is on the devices of all processes. A process can read the parts on its devices.
These functions work for one process and for many.
"""

import math
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Sharding


def distribute(tree: Any, sharding: Sharding) -> Any:
    """Global arrays from numpy arrays that every process has. Each process places its part."""

    def put(leaf):
        array = np.asarray(leaf)
        return jax.make_array_from_callback(array.shape, sharding, lambda index: array[index])

    return jax.tree.map(put, tree)


def fetch(tree: Any) -> Any:
    """Numpy arrays of global arrays, whole on every process; all processes call it."""

    def gathered(leaf):
        if isinstance(leaf, jax.Array) and not leaf.is_fully_addressable:
            return multihost_utils.process_allgather(leaf, tiled=True)
        return leaf

    return jax.device_get(jax.tree.map(gathered, tree))


def placed_shapes(shapes: Any, shardings: Any) -> Any:
    """Shapes and dtypes with a placement: those of `shapes` with `shardings`."""
    return jax.tree.map(
        lambda x, sharding: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding),
        shapes,
        shardings,
    )


def bytes_per_device(tree: Any) -> int:
    """Memory that arrays, or shapes with shardings, take on each device."""
    leaves = jax.tree.leaves(tree)
    return sum(math.prod(x.sharding.shard_shape(x.shape)) * x.dtype.itemsize for x in leaves)
