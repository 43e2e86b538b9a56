"""Stored tensors checked against a table of parameters, and put on devices."""

from collections.abc import Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils

from rlvr_jax.policy.parameters import ParameterEntry, parameter_at
from rlvr_jax.policy.tensors import StoredTensor


def place(
    table: list[ParameterEntry],
    shapes: Any,
    tensors: Mapping[str, StoredTensor],
    shardings: Any = None,
    passed_over: Iterable[str] = (),
    dtype: Any = np.float32,
) -> Any:
    """The parameters of a table from stored tensors, one after the other.

    Every name and shape is checked before anything is read. Each device reads its own part.

    Args:
      table: name, shape and place of each parameter.
      shapes: the pytree's arrays, or anything with their shapes, in its structure.
      tensors: stored tensors by name.
      shardings: in the same structure; one device if None.
      passed_over: names of tensors that are not used.
      dtype: of the parameters.
    Raises:
      ValueError: a tensor is missing, has another shape, or has no place in the table.
    """
    _check(table, shapes, tensors, passed_over)
    params: dict[str, Any] = {}
    for entry in table:
        node = params
        for key in entry.path[:-1]:
            node = node.setdefault(key, {})
        node[entry.path[-1]] = _placed(
            entry,
            tensors,
            parameter_at(shapes, entry.path).shape,
            None if shardings is None else parameter_at(shardings, entry.path),
            dtype,
        )
    return params


def on_host(array: jax.Array, index: tuple[int, ...] = ()) -> np.ndarray:
    """The whole of an array, or of its entry at `index`, on every host; all hosts call it if it
    is on several."""
    if isinstance(array, jax.Array) and [d.platform for d in array.devices()] == ["cpu"]:
        return np.asarray(array)[index]  # a view: it is in the host's memory already
    array = array[index] if index else array
    if isinstance(array, jax.Array) and not array.is_fully_addressable:
        array = multihost_utils.process_allgather(array, tiled=True)
    return np.asarray(array)


def tensor_shape(entry: ParameterEntry, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Shape of one of the stored tensors that make up a parameter of `shape`."""
    inner = shape[entry.num_stacked :]
    return inner[::-1] if entry.transposed else inner


def _check(
    table: list[ParameterEntry],
    shapes: Any,
    tensors: Mapping[str, StoredTensor],
    passed_over: Iterable[str],
) -> None:
    left = set(tensors) - set(passed_over)
    for entry in table:
        shape = parameter_at(shapes, entry.path).shape
        wanted = tensor_shape(entry, shape)
        for _, name in entry.names(*map(range, shape[: entry.num_stacked])):
            if name not in tensors:
                raise ValueError(f"load: the weights must hold {name}, found no such tensor")
            if tensors[name].shape != wanted:
                raise ValueError(
                    f"load: {name} must have the shape {wanted} that the config asks for,"
                    f" got {tensors[name].shape}"
                )
            left.discard(name)
    if left:
        raise ValueError(f"load: the weights must fit the model, got also {sorted(left)[:5]}")


def _placed(
    entry: ParameterEntry,
    tensors: Mapping[str, StoredTensor],
    shape: tuple[int, ...],
    sharding: jax.sharding.Sharding | None,
    dtype: Any,
) -> jax.Array:
    parts: dict[str, np.ndarray] = {}

    def read(index):
        # Devices that hold the same part ask for it one after the other.
        if str(index) not in parts:
            stacked, inner = index[: entry.num_stacked], index[entry.num_stacked :]
            ranges = [
                range(*part.indices(size)) for part, size in zip(stacked, shape, strict=False)
            ]
            inner = inner[::-1] if entry.transposed else inner
            arrays = [tensors[name].read(inner) for _, name in entry.names(*ranges)]
            arrays = [array.T if entry.transposed else array for array in arrays]
            joined = np.stack(arrays).reshape(*map(len, ranges), *arrays[0].shape)
            parts[str(index)] = joined.astype(dtype, copy=False)
        return parts[str(index)]

    if sharding is None:
        return jnp.asarray(read((slice(None),) * len(shape)))
    return jax.make_array_from_callback(shape, sharding, read)
