"""Checks of the values that the parts of an experience return."""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from rlvr_jax.experience.batch import Batch

OF_APPLY = "batch", "state", "metrics"


def answer_of(what: str, answer: Any, names: tuple[str, ...]) -> tuple[Any, ...]:
    """The values that a part returned, if their number is that of `names`.

    Raises:
      ValueError: there are more or fewer values, or the metrics are not numbers by name.
    """
    wanted = f"{what} must return ({', '.join(names)})"
    if not isinstance(answer, tuple) or len(answer) != len(names):
        given = (
            f"({', '.join(type(one).__name__ for one in answer)})"
            if isinstance(answer, tuple)
            else f"only {type(answer).__name__}"
        )
        raise ValueError(f"{wanted}, got {given}")
    metrics = answer[-1]
    if not isinstance(metrics, Mapping):
        raise ValueError(f"{wanted}, metrics a dict of numbers, got {type(metrics).__name__}")
    for name, value in metrics.items():
        if not isinstance(name, str) or np.ndim(value) or not _is_number(value):
            raise ValueError(f"{wanted}, metrics a dict of numbers, got {name!r}: {value!r:.80}")
    return answer


def _is_number(value: Any) -> bool:
    return np.issubdtype(np.asarray(value).dtype, np.number) or isinstance(value, bool | np.bool_)


def check_batch(label: str, batch: Any, graded: bool = True) -> None:
    """Raises ValueError unless `batch` is a batch with one request (and grade) for each row."""
    if not isinstance(batch, Batch):
        raise ValueError(f"{label}: apply must return a Batch first, got {type(batch).__name__}")
    rows = len(batch.rollouts.group)
    for name, given in (
        ("requests", batch.requests),
        *((("grades", batch.grades),) if graded else ()),
    ):
        if len(given) != rows:
            raise ValueError(
                f"{label}: {name} must have an entry for each of {rows} rows, got {len(given)}"
            )
    if not rows:
        raise ValueError(f"{label}: apply must leave rows, got none")


def keep_state(states: dict[str, Any], name: str, label: str, new: Any) -> None:
    """Stores the new state of a part that has a state.

    Args:
      states: states by name; changed.
      name: name of the part in the chain.
      label: the part as it is printed, for errors.
      new: the returned state.
    """
    state = like(label, states.get(name, ()), new)
    if name in states:
        states[name] = state


def like(label: str, before: Any, after: Any) -> Any:
    """The new state, which must have the shapes of the old one, as checkpoints store it."""
    after = jax.tree.map(np.asarray, after)
    old, new = (
        [(jax.tree_util.keystr(path), np.shape(x), np.asarray(x).dtype) for path, x in leaves]
        for leaves in map(jax.tree.leaves_with_path, (before, after))
    )
    kinds = [
        {path: f"{dtype}{list(shape)}" for path, shape, dtype in leaves} for leaves in (old, new)
    ]
    for path in sorted(kinds[0].keys() | kinds[1].keys()):
        had, has = (known.get(path, "nothing") for known in kinds)
        if had != has:
            raise ValueError(f"{label}: state{path} must stay {had}, as init makes it, got {has}")
    return after
