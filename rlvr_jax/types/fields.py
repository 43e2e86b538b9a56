"""Dataclasses of arrays as pytrees, and what their annotations say of shapes."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence

import jax

__all__ = ["axes_of", "fits", "pytree"]

_ANNOTATION = re.compile(r"""(Float|Int|Bool)\[Array, ["']([^"']+)["']\]""")


def pytree(cls):
    """Registers a dataclass as a pytree whose fields are all children."""
    names = [f.name for f in dataclasses.fields(cls)]
    return jax.tree_util.register_dataclass(cls, data_fields=names, meta_fields=[])


def axes_of(cls: type) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Kind ("Float", "Int" or "Bool") and axes of every array field, as they are annotated."""
    found = {f.name: _ANNOTATION.match(str(f.type)) for f in dataclasses.fields(cls)}
    return {name: (match[1], tuple(match[2].split())) for name, match in found.items() if match}


def fits(shape: Sequence[int], axes: Sequence[str], sizes: Mapping[str, int]) -> bool:
    """Whether a shape has these axes, those in `sizes` with that size; the others have any."""
    if len(shape) != len(axes):
        return False
    return all(sizes.get(axis, size) == size for axis, size in zip(axes, shape, strict=True))
