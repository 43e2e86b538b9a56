"""Dataclasses of arrays as pytrees, the shapes of their annotations, and names of usual shapes."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, get_args, get_type_hints

import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Int

# Arrays of the tokens of responses, and of rollouts.
Values = Float[Array, "B T"]
Mask = Bool[Array, "B T"]
Rows = Float[Array, "B"]
RowMask = Bool[Array, "B"]
Ids = Int[Array, "B"]

Registered = TypeVar("Registered", bound=type)


def pytree(cls: Registered) -> Registered:
    """Registers a dataclass as a pytree whose fields are all children."""
    names = [f.name for f in dataclasses.fields(cls)]
    return jax.tree_util.register_dataclass(cls, data_fields=names, meta_fields=[])


def axes_of(cls: type) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Kind ("Float", "Int" or "Bool") and axes of every array field, as they are annotated."""
    found = {}
    for name, hint in get_type_hints(cls).items():
        for array in (hint, *get_args(hint)):
            if hasattr(array, "dim_str"):
                found[name] = axes_of_type(array)
    return found


def axes_of_type(array: Any) -> tuple[str, tuple[str, ...]]:
    """Kind and axes of an array type, such as `Float[Array, "B T"]`."""
    return array.__name__.partition("[")[0], tuple(array.dim_str.split())


def where_tokens(on: np.ndarray, array: np.ndarray, other: Any = None) -> np.ndarray:
    """An array [B, T, …] where bool [B, T] is set, and another one elsewhere; None: 0."""
    other = array.dtype.type(0) if other is None else other
    return np.where(on.reshape(*on.shape, *[1] * (array.ndim - 2)), array, other)


def fits(shape: Sequence[int], axes: Sequence[str], sizes: Mapping[str, int]) -> bool:
    """Whether a shape has these axes, those in `sizes` with that size; the others have any."""
    if len(shape) != len(axes):
        return False
    return all(sizes.get(axis, size) == size for axis, size in zip(axes, shape, strict=True))
