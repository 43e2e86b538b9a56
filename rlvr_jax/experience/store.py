"""A store of rows in the state of a part: a ring of fixed capacity in numpy.

    store = empty_store(64, tokens=((8,), np.int32), number=((), np.int32))
    store = push(store, {"tokens": tokens, "number": numbers}, step)
    rows = taken(store, oldest(store, 4))
    rows, store = pop_oldest(store, 16)

`empty_replay`, `records_of` and `replayed` store rows that are trained in a later step.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from rlvr_jax.arguments import check_each
from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.parts import Actor, RunInfo
from rlvr_jax.experience.requests import PLAIN, SampleRequest
from rlvr_jax.tasks import Grade, Task
from rlvr_jax.types.hyperparameters import Count

Rows = Mapping[str, np.ndarray]


class Store(NamedTuple):
    """Rows in a ring. If it is full, a new row replaces the oldest one.

    Fields:
      rows: by name, [capacity, …].
      step: int32 [capacity], step in which the row was pushed.
      first: int32 [], position of the oldest row.
      held: int32 [], number of rows.
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
      capacity: largest number of rows, at least 1.
      fields: shape and dtype of a row, by name.
    Raises:
      ValueError: capacity is below 1.
    """
    check_each(Count, "empty_store", capacity=capacity)
    rows = {name: np.zeros((capacity, *shape), kind) for name, (shape, kind) in fields.items()}
    return Store(rows, np.zeros(capacity, np.int32), np.int32(0), np.int32(0))


def push(store: Store, rows: Rows, step: int) -> Store:
    """The store with further rows, in order; only the last ones if they exceed its capacity.

    Args:
      rows: [n, …] by the names of the store, and cast to its dtypes.
    Raises:
      ValueError: the names are not those of the store.
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
    """Positions of the oldest rows, in order; None: of all rows."""
    held = int(store.held) if number is None else min(number, int(store.held))
    return (int(store.first) + np.arange(held)) % store.capacity


def uniform_places(store: Store, number: int, random: np.random.Generator) -> np.ndarray:
    """Places of rows that are sampled uniformly, without replacement."""
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


def as_bytes(lines: Sequence[str], size: int) -> np.ndarray:
    """Texts as rows of bytes, uint8 [n, size]; zeros for a text that is too long."""
    rows = np.zeros((len(lines), size), np.uint8)
    for row, line in zip(rows, map(str.encode, lines), strict=True):
        if len(line) <= size:
            row[: len(line)] = np.frombuffer(line, np.uint8)
    return rows


def as_texts(rows: np.ndarray) -> list[str]:
    """The texts of `as_bytes`."""
    return [bytes(row).rstrip(b"\0").decode() for row in rows]


def repeatable(batch: Batch, setting: RunInfo) -> np.ndarray:
    """Rows that can be restored from prompt number and tokens, bool [B]: responses to unchanged
    train prompts, without given tokens."""
    train = setting.task.train

    def plain(request: SampleRequest) -> bool:
        known = request.number < len(train) and train[request.number] is request.prompt
        return known and request.view == PLAIN and not len(request.given)

    return np.array([plain(request) for request in batch.requests], bool)


def rewritten(actor: Actor, task: Task, rows: Rows) -> Batch:
    """Stored responses as rows of an ungraded batch, each row a separate group.

    Args:
      rows: "number" (of the train prompt), "tokens" and "length".
    """
    requests = [SampleRequest(task.train[number], int(number), 1) for number in rows["number"]]
    answers = [ids[:end].tolist() for ids, end in zip(rows["tokens"], rows["length"], strict=True)]
    return actor.written(requests, answers)


PER_TOKEN = ("behaviour_logp", "entropy", "temperature", "old_logp")
PER_ROW = ("outcome", "reward")
OTHER = ("tokens", "length", "mask", "truncated", "weight_version")


def empty_replay(capacity: int, setting: RunInfo, *more: str) -> Store:
    """A store without rows, for rows of `records_of`.

    Args:
      more: further records of tokens, such as "advantage".
    """
    tokens = (setting.response_tokens,)
    return empty_store(
        capacity,
        number=((), np.int32),
        tokens=(tokens, np.int32),
        length=((), np.int32),
        mask=(tokens, np.bool_),
        truncated=((), np.bool_),
        weight_version=((), np.int32),
        **{name: (tokens, np.float32) for name in (*PER_TOKEN, *more)},
        **{name: ((), np.float32) for name in PER_ROW},
    )


def records_of(batch: Batch, actor: Actor, *more: str) -> dict[str, np.ndarray]:
    """The stored values of rows, with log-probs by the weights that sampled them."""
    batch = batch.with_rollouts(old_logp=actor.score(batch, ["logp"])["logp"])
    names = (*OTHER, *PER_TOKEN, *PER_ROW, *more)
    known = {name: batch.rollouts.get(name) for name in names}
    return {"number": np.array([request.number for request in batch.requests], np.int32), **known}


def replayed(actor: Actor, task: Task, rows: Rows) -> Batch:
    """Rows of `records_of` as a graded batch, marked `stored`."""
    written = rewritten(actor, task, rows)
    kind = written.rollouts.reward.dtype
    known = {
        name: array.astype(kind) if array.dtype == np.float32 else array
        for name, array in rows.items()
        if name not in ("number", "tokens", "length", *PER_ROW)
    }
    pairs = zip(*(rows[name].tolist() for name in PER_ROW), strict=True)
    whole = written.with_rollouts(stored=np.ones(len(written), bool), **known)
    return whole.graded([Grade(outcome, reward) for outcome, reward in pairs])
