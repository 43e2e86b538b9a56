"""Measurements of rows, by name: split, merged, written into rollouts."""

from collections.abc import Iterable, Mapping

import jax
import numpy as np

from rlvr_jax.types import Rollouts

Records = dict[str, np.ndarray]


def prompts_where(rows: np.ndarray, one: Rollouts, two: Rollouts) -> Rollouts:
    """Prompts of `one` in some rows, of `two` in the others; the narrower ones are padded."""
    width = max(one.prompt_tokens.shape[1], two.prompt_tokens.shape[1])
    padded = [
        np.pad(x.prompt_tokens, ((0, 0), (0, width - x.prompt_tokens.shape[1]))) for x in (one, two)
    ]
    tokens = np.where(rows[:, None], *padded)
    return two.replace(
        prompt_tokens=tokens,
        prompt_length=np.where(rows, one.prompt_length, two.prompt_length),
    )


def rows_of(rollouts: Rollouts, rows: np.ndarray) -> Rollouts:
    """Some rows of the rollouts."""
    return jax.tree.map(lambda x: x[rows], rollouts)


def joined_records(
    count: int, found: Iterable[tuple[np.ndarray, Mapping[str, np.ndarray]]]
) -> Records:
    """One array of `count` rows by name, from rows and their measurements."""
    whole: Records = {}
    for rows, values in found:
        for name, value in values.items():
            blank = np.zeros((count, *value.shape[1:]), value.dtype)
            whole.setdefault(name, blank)[rows] = value
    return whole


def with_old(rollouts: Rollouts, records: Records) -> Rollouts:
    """The rollouts with the old statistics as they were used."""
    known = {name: x for name, x in records.items() if rollouts.get(name) is not None}
    return rollouts.replace(**{name: x for name, x in known.items() if name.startswith("old_")})
