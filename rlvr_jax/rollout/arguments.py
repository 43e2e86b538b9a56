"""What the sampler is given, looked at where it lies on the host: lists and numpy's arrays."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

__all__ = ["prompt_numbers", "prompt_table", "stop_ids", "temperatures"]


def _on_host(values: Any) -> bool:
    """Whether values can be looked at for nothing."""
    return not isinstance(values, jax.Array)


def prompt_table(prompts: Any, vocabulary: int) -> Int[Array, "P L"]:
    """Prompts as an array.

    Raises:
      ValueError: they are no table of integers, or on the host and not of the vocabulary.
    """
    try:
        table = np.asarray(prompts) if _on_host(prompts) else prompts
    except ValueError:  # rows of several lengths
        table = np.empty(len(prompts), object)
    if table.ndim != 2 or not jnp.issubdtype(table.dtype, jnp.integer):
        raise ValueError(
            f"sample: prompt_tokens must be integers [P, L], right-padded, got {table.dtype}"
            f"{list(table.shape)}"
        )
    if _on_host(table) and table.size and not 0 <= table.min() <= table.max() < vocabulary:
        worst = table.min() if table.min() < 0 else table.max()
        raise ValueError(f"sample: prompt_tokens must be in 0 … {vocabulary - 1}, got {worst}")
    return jnp.asarray(table)


def prompt_numbers(
    name: str, values: Any, prompts: int, least: int = 0, most: int = 2**31 - 1
) -> Int[Array, "P"]:
    """A number of each prompt as int32.

    Raises:
      ValueError: other numbers than one whole one for each; on the host, one out of bounds.
    """
    array = np.asarray(values) if _on_host(values) else values
    # Floats that are whole are numbers, too, such as those of np.zeros.
    whole = jnp.issubdtype(array.dtype, jnp.number)
    if _on_host(array) and whole:
        whole = bool(np.all(array == np.floor(array)))
    if not whole or array.shape != (prompts,):
        raise ValueError(
            f"sample: {name} must be {prompts} whole numbers, one for each prompt, got"
            f" {array.dtype}{list(array.shape)}"
        )
    if _on_host(array) and prompts and not least <= array.min() <= array.max() <= most:
        worst = array.min() if array.min() < least else array.max()
        raise ValueError(f"sample: {name} must be in {least} … {most}, got {worst}")
    return jnp.asarray(array, jnp.int32)


def stop_ids(stop_tokens: Any) -> Int[Array, "S"]:
    """Stop tokens as an array; none are none.

    Raises:
      ValueError: what is no collection of integers.
    """
    if isinstance(stop_tokens, (set, frozenset)):
        stop_tokens = sorted(stop_tokens)
    ids = None if stop_tokens is None else jnp.asarray(stop_tokens)
    if ids is None or ids.ndim != 1 or (ids.size and not jnp.issubdtype(ids.dtype, jnp.integer)):
        got = "None" if ids is None else f"{ids.dtype}{list(ids.shape)}"
        raise ValueError(f"sample: stop_tokens must be a sequence of ids, got {got}")
    return ids.astype(jnp.int32)


def temperatures(values: Any) -> Any:
    """Temperatures of prompts as they are; None are none.

    Raises:
      ValueError: on the host, what is no number, or one below 0.
    """
    if values is None or not _on_host(values):
        return values
    array = np.asarray(values)
    if not jnp.issubdtype(array.dtype, jnp.number) or not bool(np.all(array >= 0)):
        raise ValueError(f"sample: temperature must be numbers of 0 or more, got {values!r}")
    return values
