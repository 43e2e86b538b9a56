"""Tensors of safetensors files: read in parts, written in shards."""

import itertools
import json
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from rlvr_jax.policy.json_object import json_object

_ONE_FILE = "model.safetensors"
INDEX = "model.safetensors.index.json"
_DTYPES = ("BF16", "F16", "F32", "F64")


class StoredTensor(NamedTuple):
    """A tensor in a file.

    Fields:
      shape: its shape.
      read: (a slice for each axis) -> that part, float32; nothing else is read.
    """

    shape: tuple[int, ...]
    read: Callable[[tuple[slice, ...]], np.ndarray]


def stored_tensors(folder: Path) -> dict[str, StoredTensor]:
    """Returns the tensors of `model.safetensors`, or of the shards that its index names.

    Raises:
      ValueError: a missing or invalid safetensors file; an index without files of the folder;
        weights that the index does not name; a tensor that its shard lacks; or a dtype that is not
        a float of 16 to 64 bits.
    """
    index, places = folder / INDEX, {}
    if index.is_file():
        places = json_object(index.read_bytes(), index).get("weight_map")
        if not isinstance(places, dict) or not all(isinstance(x, str) for x in places.values()):
            raise ValueError(
                f"load: {index} must hold weight_map, an object from names of tensors to names of"
                f" files, got {places!r:.80}"
            )
        files = sorted(set(places.values()))
        outside = [name for name in files if Path(name).name != name]
        if outside:
            raise ValueError(
                f"load: weight_map of {index} must name files of its folder, got {outside[0]!r}"
            )
        if _ONE_FILE not in files and (folder / _ONE_FILE).is_file():
            raise ValueError(
                f"load: {folder} must hold either {_ONE_FILE} or the shards of {INDEX}, got both;"
                " remove the older one"
            )
    else:
        files = [_ONE_FILE]
    for name in files:
        if not (folder / name).is_file():
            raise ValueError(f"load: {folder} must hold {name}, found no such file")
    tensors: dict[str, StoredTensor] = {}
    shards = {name: tensors_of(folder / name) for name in files}
    for held in shards.values():
        tensors |= held
    for name, file in places.items():
        if name not in shards[file]:
            raise ValueError(f"load: {folder / file} must hold {name}, which {INDEX} lists")
        tensors[name] = shards[file][name]
    return tensors


def tensors_of(path: Path) -> dict[str, StoredTensor]:
    """The tensors of one safetensors file."""
    try:
        file = safe_open(path, framework="numpy")
    except SafetensorError as error:
        raise ValueError(f"load: {path} must be a safetensors file, got one with {error}") from None
    tensors = {}
    for name in file.keys():  # noqa: SIM118 (safe_open is no mapping)
        stored = file.get_slice(name)
        if stored.get_dtype() not in _DTYPES:
            raise ValueError(
                f"load: {name} must have one of the dtypes {', '.join(_DTYPES)},"
                f" got {stored.get_dtype()}"
            )

        def read(index, stored=stored):
            return np.asarray(stored[index], np.float32)

        tensors[name] = StoredTensor(tuple(stored.get_shape()), read)
    return tensors


def write_tensors(
    folder: Path,
    shapes: Mapping[str, jax.ShapeDtypeStruct],
    tensors: Iterable[tuple[str, np.ndarray]],
    max_shard_bytes: int,
) -> None:
    """Writes tensors in the order given; those of an earlier writing are removed.

    One file if they fit into `max_shard_bytes`, else shards with an index; at most one shard is
    held in memory.

    Args:
      folder: an existing folder.
      shapes: shape and dtype of every tensor, in the order of `tensors`.
      tensors: name and array of each tensor.
      max_shard_bytes: largest size of a file.
    """
    for stale in [folder / INDEX, *folder.glob("model*.safetensors")]:
        stale.unlink(missing_ok=True)
    sizes = {name: math.prod(x.shape) * x.dtype.itemsize for name, x in shapes.items()}
    shards = _shards(sizes, max_shard_bytes)
    count = len(shards)
    files = [f"model-{index + 1:05}-of-{count:05}.safetensors" for index in range(count)]
    if count == 1:
        files = ["model.safetensors"]
    tensors = iter(tensors)
    for file, names in zip(files, shards, strict=True):
        held = dict(itertools.islice(tensors, len(names)))
        save_file(held, folder / file, metadata={"format": "pt"})
    if count > 1:
        place = {name: file for file, names in zip(files, shards, strict=True) for name in names}
        index = {"metadata": {"total_size": sum(sizes.values())}, "weight_map": place}
        (folder / INDEX).write_text(json.dumps(index, indent=2) + "\n")


def _shards(sizes: Mapping[str, int], max_shard_bytes: int) -> list[list[str]]:
    """Names in order, split before the tensor that would overfill a shard."""
    shards: list[list[str]] = [[]]
    filled = 0
    for name, size in sizes.items():
        if shards[-1] and filled + size > max_shard_bytes:
            shards.append([])
            filled = 0
        shards[-1].append(name)
        filled += size
    return shards
