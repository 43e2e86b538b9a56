"""A store of rows: a ring of fixed capacity in numpy, part of a part's state.

    store = empty_store(64, tokens=((8,), np.int32), number=((), np.int32))
    store = push(store, {"tokens": tokens, "number": numbers}, step)
    rows = taken(store, newest(store, 4))
    rows, store = pop_oldest(store, 16)

What `oldest`, `newest`, `uniform` and `weighted` give are places, to be read by `taken`.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from rlvr_jax.experience.asks import PLAIN, Ask
from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.parts import Actor, Setting
from rlvr_jax.tasks import Task
from rlvr_jax.types.hyperparameters import Count
from rlvr_jax.types.parts import check_each

__all__ = [
    "Store",
    "empty_store",
    "oldest",
    "pop_oldest",
    "push",
    "repeatable",
    "rewritten",
    "taken",
    "uniform_places",
]

Rows = Mapping[str, np.ndarray]


class Store(NamedTuple):
    """Rows in a ring; a new one takes the place of the oldest where there is no other.

    Fields:
      rows: by name, [capacity, …].
      step: int32 [capacity], when the row was pushed.
      first: int32 [], place of the oldest row.
      held: int32 [], how many there are.
    """

    rows: dict[str, np.ndarray]
    step: np.ndarray
    first: np.ndarray
    held: np.ndarray

    @property
    def capacity(self) -> int:
        return len(self.step)


def empty_store(capacity: int, **fields: tuple[Sequence[int], type]) -> Store:
    """A store without rows.

    Args:
      capacity: rows at most, at least 1.
      fields: by name, shape and dtype of a row.
    Raises:
      ValueError: no capacity.
    """
    check_each(Count, "empty_store", capacity=capacity)
    rows = {name: np.zeros((capacity, *shape), kind) for name, (shape, kind) in fields.items()}
    return Store(rows, np.zeros(capacity, np.int32), np.int32(0), np.int32(0))


def push(store: Store, rows: Rows, step: int) -> Store:
    """The store with further rows, in order; of more than its capacity the last ones.

    Args:
      rows: the same names, [n, …]; they get the store's dtypes.
      step: of the run.
    Raises:
      ValueError: other names.
    """
    if rows.keys() != store.rows.keys():
        raise ValueError(f"push: rows must have {sorted(store.rows)}, got {sorted(rows)}")
    rows = {name: np.asarray(array)[-store.capacity :] for name, array in rows.items()}
    number = len(next(iter(rows.values())))
    places = (int(store.first) + int(store.held) + np.arange(number)) % store.capacity
    new, when = {}, store.step.copy()
    for name, array in store.rows.items():
        new[name] = array.copy()
        new[name][places] = rows[name]
    when[places] = step
    lost = max(0, int(store.held) + number - store.capacity)
    first = (int(store.first) + lost) % store.capacity
    return Store(new, when, np.int32(first), np.int32(int(store.held) + number - lost))


def oldest(store: Store, number: int | None = None) -> np.ndarray:
    """Places of the oldest rows, those first; all of them for None."""
    held = int(store.held) if number is None else min(number, int(store.held))
    return (int(store.first) + np.arange(held)) % store.capacity


def uniform_places(store: Store, number: int, random: np.random.Generator) -> np.ndarray:
    """Places of rows drawn without replacement, all alike."""
    held = int(store.held)
    places = random.choice(held, min(number, held), replace=False)
    return (int(store.first) + places) % store.capacity


def taken(store: Store, places: np.ndarray) -> dict[str, np.ndarray]:
    """The rows at some places."""
    return {name: array[places] for name, array in store.rows.items()}


def pop_oldest(store: Store, number: int) -> tuple[dict[str, np.ndarray], Store]:
    """The oldest rows, and the store without them."""
    places = oldest(store, number)
    first = (int(store.first) + len(places)) % store.capacity
    rest = store._replace(first=np.int32(first), held=np.int32(int(store.held) - len(places)))
    return taken(store, places), rest


def repeatable(batch: Batch, setting: Setting) -> np.ndarray:
    """Rows that can be written again from the number of their prompt and their tokens: answers to
    train prompts as they are, with nothing given; bool [B]."""
    train = setting.task.train

    def plain(ask: Ask) -> bool:
        known = ask.number < len(train) and train[ask.number] is ask.prompt
        return known and ask.view == PLAIN and not len(ask.given)

    return np.array([plain(ask) for ask in batch.asks], bool)


def rewritten(actor: Actor, task: Task, rows: Rows) -> Batch:
    """Stored answers as rows of a batch, each a group of its own; ungraded.

    Args:
      rows: with number (of the train prompt), tokens and length.
    """
    asks = [Ask(task.train[number], int(number), 1) for number in rows["number"]]
    answers = [ids[:end].tolist() for ids, end in zip(rows["tokens"], rows["length"], strict=True)]
    return actor.written(asks, answers)
