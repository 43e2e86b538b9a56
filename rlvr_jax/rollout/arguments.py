"""Checks of the arguments of sampler and pool on the host: lists and numpy arrays."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int


def _on_host(values: Any) -> bool:
    """Whether values can be read at no cost; a list may hold traced values."""
    return not any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(values))


def token_table(
    caller: str, name: str, tokens: Any, vocabulary: int, length: Any = None, of: str = "row"
) -> Int[Array, "P L"]:
    """Prompts, or tokens that rows are given, as an array.

    Args:
      caller: name of the function, for errors.
      name: name of the argument, for errors.
      tokens: right-padded table of ids [P, L].
      vocabulary: number of known ids (V).
      length: how many of each row are meant; None: all, also the padding.
      of: what each is for, a word.
    Raises:
      ValueError: not a table of integers, another number of rows than `length`, or on the
        host and not of the vocabulary.
    """
    try:
        table: Any = np.asarray(tokens) if _on_host(tokens) else jnp.asarray(tokens)
    except ValueError:  # rows of several lengths
        table = np.empty(len(tokens), object)
    if table.ndim != 2 or not jnp.issubdtype(table.dtype, jnp.integer):
        raise ValueError(
            f"{caller}: {name} must be integers [{of[0].upper()}, L],"
            f" right-padded, got {table.dtype}{list(table.shape)}"
        )
    if length is not None and len(table) != len(length):
        raise ValueError(
            f"{caller}: {name} must have a row for each of {len(length)}, got {len(table)}"
        )
    if _on_host(table) and _on_host(length):
        meant = table
        if length is not None:
            meant = table[np.arange(table.shape[1]) < np.asarray(length)[:, None]]
        if meant.size and not 0 <= meant.min() <= meant.max() < vocabulary:
            worst = meant.min() if meant.min() < 0 else meant.max()
            raise ValueError(f"{caller}: {name} must be in 0 … {vocabulary - 1}, got {worst}")
    return jnp.asarray(table, jnp.int32)


def whole_numbers(
    caller: str,
    name: str,
    values: Any,
    number: int,
    least: int = -(2**31),
    most: int = 2**31 - 1,
    *,
    of: str = "row",
) -> Int[Array, "P"]:
    """A number of each prompt, or of each row, as int32.

    Args:
      caller: name of the function, for errors.
      name: name of the argument, for errors.
      values: the numbers.
      number: how many there must be.
      least, most: bounds of each number, included.
      of: what each is for, a word.
    """
    array = np.asarray(values) if _on_host(values) else jnp.asarray(values)
    # Floats that are whole are also numbers, such as those of np.zeros.
    whole = jnp.issubdtype(array.dtype, jnp.number)
    if _on_host(array) and whole:
        whole = bool(np.all(array == np.floor(array)))
    if not whole or array.shape != (number,):
        raise ValueError(
            f"{caller}: {name} must be {number} whole numbers, one for each {of}, got"
            f" {array.dtype}{list(array.shape)}"
        )
    if _on_host(array) and number and not least <= array.min() <= array.max() <= most:
        worst = array.min() if array.min() < least else array.max()
        raise ValueError(f"{caller}: {name} must be in {least} … {most}, got {worst}")
    return jnp.asarray(array, jnp.int32)


def row_mask(caller: str, rows: Any, number: int) -> Bool[Array, "R"]:
    """A choice of rows as bools; numbers of rows are an error."""
    array = rows if isinstance(rows, jax.Array) else np.asarray(rows)
    if array.dtype != bool or array.shape != (number,):
        raise ValueError(
            f"{caller}: rows must be {number} bools, one for each row, got"
            f" {array.dtype}{list(array.shape)}"
        )
    return jnp.asarray(array)


def stop_ids(caller: str, stop_tokens: Any) -> Int[Array, "S"]:
    """Stop tokens as an array; none are none."""
    if isinstance(stop_tokens, (set, frozenset)):
        stop_tokens = sorted(stop_tokens)
    ids = None if stop_tokens is None else jnp.asarray(stop_tokens)
    if ids is None or ids.ndim != 1 or (ids.size and not jnp.issubdtype(ids.dtype, jnp.integer)):
        got = "None" if ids is None else f"{ids.dtype}{list(ids.shape)}"
        raise ValueError(f"{caller}: stop_tokens must be a sequence of ids, got {got}")
    return ids.astype(jnp.int32)


def temperatures(caller: str, values: Any) -> Any:
    """Temperatures of prompts or rows as they are; None are none."""
    if values is None or not _on_host(values):
        return values
    array = np.asarray(values)
    if not jnp.issubdtype(array.dtype, jnp.number) or not bool(np.all(array >= 0)):
        raise ValueError(f"{caller}: temperature must be numbers of 0 or more, got {values!r}")
    return values
