"""Which tokens of a rewritten text were edited, and rewards of those of the original."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

__all__ = ["edit_distance_table", "edited_places", "rewriter_reward"]


def rewriter_reward(
    probability: Float[Array, "B T"], right: Bool[Array, "B"], high: float, low: float
) -> Float[Array, "B T"]:
    """p - ½, within [0, h] in right responses and [-l, 0] in wrong ones.

    Tokens that the rewriter would keep earn in a right response, those that it would change cost in
    a wrong one; the others are nothing.

    Args:
      probability: p of the rewriting model, of the original tokens.
      right: whether the response is.
      high, low: h and l.
    Source: RLMEC, https://github.com/RUCAIBox/RLMEC.
    """
    above = probability - 0.5
    return jnp.where(right[:, None], jnp.clip(above, 0, high), jnp.clip(above, -low, 0))


def edit_distance_table(original: Sequence[Any], rewrite: Sequence[Any]) -> np.ndarray:
    """Levenshtein distances of all beginnings, [n + 1, m + 1]; each edit costs 1."""
    table = np.zeros((len(original) + 1, len(rewrite) + 1), int)
    table[:, 0], table[0] = np.arange(len(original) + 1), np.arange(len(rewrite) + 1)
    for i, old in enumerate(original, 1):
        for j, new in enumerate(rewrite, 1):
            kept = table[i - 1, j - 1] + (old != new)
            table[i, j] = min(kept, table[i - 1, j] + 1, table[i, j - 1] + 1)
    return table


def edited_places(original: Sequence[Any], rewrite: Sequence[Any]) -> list[int]:
    """Places of the rewrite that are marked as edited, from 0.

    The way of fewest edits is walked back from both ends until one text is used up, preferring a
    match, then a deletion, an insertion, a replacement; at every place (i, j) of it with another
    token in the two texts the rewrite's token is marked, at a deletion as well. So tokens inserted
    at the very beginning are not.
    """
    table, marked = edit_distance_table(original, rewrite), set()
    i, j = len(original), len(rewrite)
    while i and j:
        if original[i - 1] == rewrite[j - 1]:
            i, j = i - 1, j - 1
            continue
        marked.add(j - 1)
        if table[i, j] == table[i - 1, j] + 1:
            i -= 1
        elif table[i, j] == table[i, j - 1] + 1:
            j -= 1
        else:
            i, j = i - 1, j - 1
    return sorted(marked)
