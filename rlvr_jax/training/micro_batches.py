"""Rows of an update in micro-batches, of which every device holds a part."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from rlvr_jax.policy.layout import ROWS, constrain
from rlvr_jax.training.plan import BatchPlan

CPU_TOKENS = 2304
"""Tokens of a micro-batch with activations that fit a CPU's caches (measured: docs/speed.md)."""


def split_rows(tree: Any, chunks: int, mesh: Mesh | None) -> Any:
    """Arrays of B rows as arrays [chunks, B / chunks, …].

    One has the next rows of each device, so that no row moves; on one device they are the next
    rows of the batch. Those of the batch's own order would be on one device each, and every
    micro-batch would be sent to all the others.
    """
    parts = row_parts(mesh)

    def split(x):
        # Rows are counted, as an array may have no columns (unknown prompts).
        rows = x.shape[0] // (parts * chunks)
        x = x.reshape(parts, chunks, rows, *x.shape[1:]).swapaxes(0, 1)
        x = x.reshape(chunks, parts * rows, *x.shape[3:])
        # Cotangents of integers lie nowhere.
        return x if x.dtype == jax.dtypes.float0 else constrain(x, mesh, (), ROWS)

    return jax.tree.map(split, tree)


def spread(groups: np.ndarray, mesh: Mesh | None) -> np.ndarray:
    """Orders groups so that the first ones are in the first micro-batches of every device.

    The order does not change if the number of groups is not a multiple of the devices.
    """
    parts = row_parts(mesh)
    return groups if len(groups) % parts else groups.reshape(-1, parts).T.reshape(-1)


def merge_rows(tree: Any, mesh: Mesh | None) -> Any:
    """The rows of all micro-batches in the order that they had before `split_rows`."""
    parts = row_parts(mesh)

    def join(x):
        chunks, rows = x.shape[0], x.shape[1] // parts
        x = x.reshape(chunks, parts, rows, *x.shape[2:]).swapaxes(0, 1)
        return constrain(jnp.reshape(x, (chunks * parts * rows, *x.shape[3:])), mesh, ROWS)

    return jax.tree.map(join, tree)


def usual_micro_batches(plan: BatchPlan, mesh: Mesh, group_tokens: int) -> int:
    """Micro-batches of an update where their number is left open.

    On a CPU the fewest ones of whole groups with at most `CPU_TOKENS` tokens on each device;
    elsewhere one.
    """
    parts, groups = row_parts(mesh), plan.prompts // plan.minibatches
    if mesh.devices.flat[0].platform != "cpu" or groups % parts:
        return 1
    groups //= parts
    most = max(1, CPU_TOKENS // group_tokens)
    return next(n for n in range(1, groups + 1) if groups % n == 0 and groups // n <= most)


def shared_rows(plan: BatchPlan, mesh: Mesh | None) -> int:
    """Number of adjacent rows with one prompt, in every micro-batch of every device."""
    return math.gcd(plan.samples, plan.rows // (row_parts(mesh) * plan.micro_batches))


def row_parts(mesh: Mesh | None) -> int:
    """Parts that a mesh splits rows into."""
    return 1 if mesh is None else math.prod(mesh.shape[axis] for axis in ROWS)
