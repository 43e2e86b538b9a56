"""Files of the server: arrays that are replaced as a whole, and logs that only grow.

A log has one record per accepted request. It is written before the request is answered, and read
after a restart. A record is the length and checksum of its content, the length of its head (JSON)
and the head and the body. The last record of a killed process may be cut off; it was not answered.
"""

import errno
import json
import os
import struct
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from safetensors import safe_open
from safetensors.numpy import save

from rlvr_jax.server.refusal import Refused

_HEAD = struct.Struct("<QII")


class Record(NamedTuple):
    """One request of a log: its number among those of its model, its kind and its body."""

    seq: int
    kind: str
    body: bytes


class Log:
    """A file of records.

    Args:
      path: file to make, or to append to behind its last whole record.
    """

    def __init__(self, path: Path):
        self.path = path
        self._size = sum(map(_size, read_log(path))) if path.exists() else 0
        self._file = path.open("ab")
        self._file.truncate(self._size)
        _sync_folder(path.parent)

    def append(self, *records: Record) -> None:
        """Writes records; they are on the disk when it returns.

        Raises:
          OSError: the disk is full. The log is then as before.
        """
        content = b"".join(map(_packed, records))
        try:
            # Not through the buffer, which would try again to write what failed.
            written = os.write(self._file.fileno(), content)
            if written < len(content):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
            os.fsync(self._file.fileno())
        except OSError:
            self._file.truncate(self._size)
            raise
        self._size += len(content)

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


def read_log(path: Path) -> Iterator[Record]:
    """The whole records of a log, in order."""
    with path.open("rb") as file:
        while len(head := file.read(_HEAD.size)) == _HEAD.size:
            size, checksum, length = _HEAD.unpack(head)
            content = file.read(size)
            if len(content) < size or zlib.crc32(content) != checksum:
                return
            named = json.loads(content[:length])
            yield Record(named["seq"], named["kind"], content[length:])


def _packed(record: Record) -> bytes:
    head = json.dumps({"seq": record.seq, "kind": record.kind}).encode()
    content = head + record.body
    return _HEAD.pack(len(content), zlib.crc32(content), len(head)) + content


def _size(record: Record) -> int:
    return len(_packed(record))


def write_file(path: Path, content: bytes) -> None:
    """Writes a file as a whole: after a kill it is the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.new")
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray], about: Mapping[str, Any]) -> None:
    """Writes arrays by name as a safetensors file, with an object of JSON about them."""
    whole = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    write_file(path, save(whole, metadata={"about": json.dumps(about)}))


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of `write_arrays`."""
    with safe_open(path, framework="numpy") as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def read_about(path: Path) -> dict[str, Any]:
    """The object of `write_arrays`."""
    with safe_open(path, framework="numpy") as file:
        return json.loads(file.metadata()["about"])


def named_arrays(head: str, tree: Any) -> dict[str, np.ndarray]:
    """The arrays of a tree on the host, by their places in it."""
    leaves = jax.tree.leaves_with_path(tree)
    return {f"{head}{jax.tree_util.keystr(path)}": np.asarray(leaf) for path, leaf in leaves}


def tree_of(head: str, arrays: Mapping[str, np.ndarray], like: Any) -> Any:
    """The tree of `named_arrays`, in the structure of `like`.

    Raises:
      Refused: a missing array, or one of another shape.
    """

    def found(path, leaf):
        name = f"{head}{jax.tree_util.keystr(path)}"
        if name not in arrays or arrays[name].shape != jnp.shape(leaf):
            seen = list(arrays[name].shape) if name in arrays else "none"
            raise Refused(
                f"the stored {name} must have the shape {list(jnp.shape(leaf))}, got {seen}"
            )
        return jnp.asarray(arrays[name], leaf.dtype)

    return jax.tree.map_with_path(found, like)


def _sync_folder(folder: Path) -> None:
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
