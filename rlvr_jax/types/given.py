"""Conversion and checks of records for rollouts: labels, masks, arrays."""

from numbers import Integral
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array


def numbered(group: Any) -> Any:
    """Labels of groups that int32 cannot hold as numbers 0, 1, …; others as they are."""
    if isinstance(group, Tracer):
        return group
    if isinstance(group, list | tuple):
        # One by one: an array of numbers and texts would turn the number 1 into the text "1".
        labels = [label.item() if hasattr(label, "item") else label for label in group]
        plain = all(isinstance(label, Integral) for label in labels)
    else:
        array = np.asarray(group)
        labels, plain = array.tolist(), array.dtype.kind in "iub"
    if plain and (not labels or _in_int32(np.asarray(labels))):
        return group
    known: dict[Any, int] = {}
    try:
        return np.array([known.setdefault(label, len(known)) for label in labels], np.int32)
    except TypeError:
        raise ValueError(
            "Rollouts.of_responses: group must be a number, text or tuple for each row, got"
            f" {group!r:.80}"
        ) from None


def _in_int32(values: np.ndarray) -> bool:
    bounds = np.iinfo(np.int32)
    return not values.size or bounds.min <= int(values.min()) <= int(values.max()) <= bounds.max


def as_mask(value: Any) -> Array:
    """A mask as bools, of bools or of the numbers 0 and 1."""
    array = as_array("mask", value)
    if array.dtype != bool and not isinstance(array, Tracer):
        other = np.asarray(array)[np.asarray((array != 0) & (array != 1))]
        if other.size:
            raise ValueError(
                f"Rollouts.of_responses: mask must be bools, or 0 and 1, got {other[0]}"
            )
    return array.astype(bool)


def as_array(name: str, value: Any) -> Array:
    """A record as an array of JAX, which would convert larger integers to int32 silently."""
    if isinstance(value, jax.Array):
        return value
    try:
        array = np.asarray(value)
    except ValueError:  # rows of several lengths
        array = np.empty(0, object)
    if array.dtype.kind not in "iufbV":  # V: bfloat16 and its like
        raise ValueError(
            f"Rollouts.of_responses: {name} must be an array of numbers, rows padded to one width,"
            f" got {value!r:.80}"
        )
    if array.dtype.kind in "iu" and not _in_int32(array):
        raise ValueError(
            f"Rollouts.of_responses: {name} must be integers of 32 bits, got"
            f" {array.flat[np.abs(array.astype(float)).argmax()]}"
        )
    return jnp.asarray(array)
