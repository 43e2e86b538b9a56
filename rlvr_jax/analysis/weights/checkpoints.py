"""Two policy folders, matrix by matrix: streamed from safetensors, compared in float64.

Tensors are read one at a time, so memory is a few matrices for any model size. Changes below the
precision of the stored dtype are not visible. Equal entries are counted by their bits; for float32
folders, equal entries of bfloat16 copies are also counted.
"""

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError, safe_open

from rlvr_jax.analysis.weights.geometry import (
    changed_entries,
    decompose,
    effective_rank,
    inside,
    largest_entries,
    reconstruction,
    smallest_entries,
    spectral_shift,
)
from rlvr_jax.analysis.weights.off_principal import random_update
from rlvr_jax.analysis.weights.spectral import to_bfloat16

_INDEX = "model.safetensors.index.json"
_FLOATS = ("BF16", "F16", "F32", "F64")
_EMBEDDINGS = ("embed_tokens", "lm_head")
_UNEMBEDDING, _TIED_TO = "lm_head.weight", "embed_tokens.weight"
_CONTROL_SEED = 0


class TensorPair(NamedTuple):
    """One tensor of both folders.

    Fields:
      name: name in the file. dtype: dtype in the files, for example "BF16" or "BF16 → F32".
      before, after: float64.
    """

    name: str
    dtype: str
    before: np.ndarray
    after: np.ndarray

    @property
    def kind(self) -> str:
        """Name of the module, for example "q_proj"."""
        return self.name.removesuffix(".weight").rsplit(".", 1)[-1]

    @property
    def layer(self) -> int | None:
        """Number of the layer; None outside the layers."""
        match = re.search(r"\.(\d+)\.", self.name)
        return int(match[1]) if match else None

    @property
    def is_matrix(self) -> bool:
        """Whether it is a matrix between hidden spaces: it has two axes and is not an embedding."""
        return self.before.ndim == 2 and self.kind not in _EMBEDDINGS


class TensorChange(NamedTuple):
    """Changes of one tensor. The fields from `spectral_shift` on are None if it is not a matrix.

    An undefined value is None: a change relative to zeros, and directions or places of changes
    without any change.

    Fields:
      name, kind, layer, shape, dtype: identity of the tensor.
      relative_norm: ‖D‖ / ‖W₀‖; 0 if both are 0, None if only ‖W₀‖ is 0.
      unchanged: fraction of the entries that are equal in the files.
      unchanged_bfloat16: fraction of the entries that are equal in bfloat16 copies.
      spectral_shift: ‖σ₁ - σ₀‖ / ‖σ₀‖.
      angle: largest principal angle of the top subspaces, left or right, degrees.
      stable_rank, effective_rank, rank1_fraction: of D.
      principal_overlap, low_overlap: fraction of the changed entries (of bfloat16 copies) on the
        principal mask and on the low-magnitude mask.
      control_overlap: `principal_overlap` of a random update with equal norm and dtype.
      mass_on_principal: fraction of ‖D‖² on the principal mask.
    """

    name: str
    kind: str
    layer: int | None
    shape: tuple[int, ...]
    dtype: str
    relative_norm: float | None
    unchanged: float
    unchanged_bfloat16: float
    spectral_shift: float | None = None
    angle: float | None = None
    stable_rank: float | None = None
    effective_rank: float | None = None
    rank1_fraction: float | None = None
    principal_overlap: float | None = None
    low_overlap: float | None = None
    control_overlap: float | None = None
    mass_on_principal: float | None = None


def tensor_pairs(before: str | Path, after: str | Path) -> Iterator[TensorPair]:
    """Reads the tensors of both folders in pairs, in the order of names.

    A tied unembedding that only one folder stores is left out; see `repeated_unembedding`.

    Raises:
      ValueError: a folder has no safetensors, a file cannot be read, the folders have different
        tensors or shapes, or values are not finite.
    """
    first, second = _files(Path(before)), _files(Path(after))
    if repeated_unembedding(before, after) is not None:
        first, second = ({n: f[n] for n in f if n != _UNEMBEDDING} for f in (first, second))
    if first.keys() != second.keys():
        apart = sorted(first.keys() ^ second.keys())
        raise ValueError(
            f"tensor_pairs: after must hold the tensors of {before}, got {after} where"
            f" {', '.join(apart[:3])} {'differ' if len(apart) > 1 else 'differs'}"
        )
    for name in sorted(first):
        old, old_dtype = _read(first[name], name)
        new, dtype = _read(second[name], name)
        if old.shape != new.shape:
            raise ValueError(
                f"tensor_pairs: {name} must have one shape, got {old.shape} and {new.shape}"
            )
        for values, folder in ((old, before), (new, after)):
            if not np.isfinite(values).all():
                raise ValueError(
                    f"tensor_pairs: {name} of {folder} must be finite, got NaN or infinity"
                )
        stored = dtype if dtype == old_dtype else f"{old_dtype} → {dtype}"
        yield TensorPair(name, stored, old, new)


def repeated_unembedding(before: str | Path, after: str | Path) -> str | Path | None:
    """The folder that stores a tied unembedding (`lm_head.weight`) which the other one leaves out.
    None: there is no such tensor, or the folders also differ in other tensors.

    The unembedding is tied if all entries equal those of the folder's embedding. The other folder
    decodes with its embedding. Comparing the embeddings therefore compares both tensors.

    Raises:
      ValueError: a folder has no safetensors, or a file cannot be read.
    """
    first, second = _files(Path(before)), _files(Path(after))
    if first.keys() ^ second.keys() != {_UNEMBEDDING}:
        return None
    folder, files = (before, first) if _UNEMBEDDING in first else (after, second)
    embeddings = [name for name in files if f".{name}".endswith(f".{_TIED_TO}")]
    if len(embeddings) != 1:
        return None
    own, _ = _read(files[_UNEMBEDDING], _UNEMBEDDING)
    return folder if np.array_equal(own, _read(files[embeddings[0]], embeddings[0])[0]) else None


def compare_pair(pair: TensorPair, rank: int = 16, density: float = 0.2) -> TensorChange:
    """Compares a tensor before and after training.

    Args:
      rank: rank of the top subspaces and of the principal mask; at most that of the matrix.
      density: fraction of the entries on each mask. Both defaults are ours.
    """
    old, new = pair.before, pair.after
    update = new - old
    size, norm = float(np.linalg.norm(old)), float(np.linalg.norm(update))
    old16, new16 = to_bfloat16(old), to_bfloat16(new)
    change = TensorChange(
        pair.name,
        pair.kind,
        pair.layer,
        old.shape,
        pair.dtype,
        relative_norm=norm / size if size else (0.0 if norm == 0 else None),
        unchanged=float(np.mean(old == new)),
        unchanged_bfloat16=float(np.mean(old16 == new16)),
    )
    if not pair.is_matrix:
        return change
    rank = min(rank, *old.shape)
    parts, later = decompose(old), decompose(new)
    change = change._replace(
        spectral_shift=spectral_shift(parts.values, later.values) if size or not norm else None,
        angle=float(np.degrees(np.max(parts.angles(later, rank)))),
    )
    if norm == 0:
        return change
    values = np.linalg.svd(update, compute_uv=False)
    principal = largest_entries(reconstruction(parts, rank), density)
    changed = changed_entries(old16, new16)
    control = changed_entries(old16, to_bfloat16(random_update(old, new, _CONTROL_SEED)))
    return change._replace(
        stable_rank=float(np.sum(values**2) / values[0] ** 2),
        effective_rank=effective_rank(values),
        rank1_fraction=float(values[0] / norm),
        principal_overlap=inside(principal, changed) if changed.any() else None,
        low_overlap=inside(smallest_entries(old, density), changed) if changed.any() else None,
        control_overlap=inside(principal, control) if control.any() else None,
        mass_on_principal=inside(principal, update**2),
    )


def compare_folders(
    before: str | Path, after: str | Path, rank: int = 16, density: float = 0.2
) -> list[TensorChange]:
    """`compare_pair` of every tensor of two policy folders.

    Args:
      before, after: policy folders with the same tensors.
      rank: of the compared top subspaces.
      density: fraction of entries that count as principal weights.
    """
    return [compare_pair(pair, rank, density) for pair in tensor_pairs(before, after)]


def _files(folder: Path) -> Mapping[str, Path]:
    """The file of each tensor."""
    index = folder / _INDEX
    if index.is_file():
        places = json.loads(index.read_bytes())["weight_map"]
        return {name: folder / file for name, file in places.items()}
    file = folder / "model.safetensors"
    if not file.is_file():
        raise ValueError(f"tensor_pairs: {folder} must hold model.safetensors, found no such file")
    with _opened(file) as opened:
        return dict.fromkeys(opened.keys(), file)


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[Any]:
    """Opens a safetensors file; ValueError if it is incomplete or missing."""
    try:
        with safe_open(file, framework="numpy") as opened:
            yield opened
    except (SafetensorError, OSError) as error:
        raise ValueError(f"tensor_pairs: {file} must be a safetensors file, got {error}") from None


def _read(file: Path, name: str) -> tuple[np.ndarray, str]:
    """One tensor as float64, and its dtype in the file."""
    with _opened(file) as opened:
        stored = opened.get_slice(name)
        dtype = stored.get_dtype()
        if dtype not in _FLOATS:
            raise ValueError(
                f"tensor_pairs: {name} must have one of the dtypes {', '.join(_FLOATS)},"
                f" got {dtype}"
            )
        return np.asarray(opened.get_tensor(name)).astype(float), dtype
