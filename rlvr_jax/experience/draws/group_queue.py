"""Groups whose rows finish in any order: quotas, staleness, and who is trained next."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rlvr_jax.types.hyperparameters import Count, NonNegativeInt
from rlvr_jax.types.parts import check_each


@dataclass
class _Group:
    number: int
    created: int
    started: int = 0
    rows: list[Any] = field(default_factory=list)


def _every(rows: Sequence[Any]) -> bool:
    del rows
    return True


class GroupQueue:
    """Which group the next row belongs to, and which group is complete; deterministic, no threads.

    A group is wanted with `size` rows; `redundancy` more may be started, so that slow ones are not
    waited for: later rows are ignored. Short rows finish first, and redundancy makes more of that.
    A group that was opened at step s is dropped when the step exceeds s + `staleness`. With neither
    it is synchronous: one group a step, of its first rows.

    Args:
      size: rows of a group.
      redundancy: further rows of a group that may be started.
      staleness: steps that a group may wait (a); so many groups are opened ahead.
      keep: (the rows of a completed group) -> whether it is trained; a group that is not is
        replaced at once.
    Source: ROLL, https://github.com/alibaba/ROLL (`rollout_scheduler.py`).
    """

    def __init__(
        self,
        size: int,
        redundancy: int = 0,
        staleness: int = 0,
        keep: Callable[[Sequence[Any]], bool] = _every,
    ):
        check_each(Count, "GroupQueue", size=size)
        check_each(NonNegativeInt, "GroupQueue", redundancy=redundancy, staleness=staleness)
        self.size = size
        self.redundancy = redundancy
        self.staleness = staleness
        self._keep = keep
        self._step: int | None = None
        self._opened = 0
        self._groups: list[_Group] = []

    @property
    def groups(self) -> list[int]:
        """The groups that are open or wait to be trained, in order of opening."""
        return [group.number for group in self._groups]

    def advance(self, step: int) -> None:
        """Begins a step: drops what is too old, and opens a group; the first call those ahead, too.

        Raises:
          ValueError: a step before the last one.
        """
        if self._step is not None and step < self._step:
            raise ValueError(f"GroupQueue: step must be at least {self._step}, got {step}")
        first, self._step = self._step is None, step
        self._groups = [one for one in self._groups if step - one.created <= self.staleness]
        for _ in range(1 + (self.staleness if first else 0)):
            self._open()

    def next(self) -> int | None:
        """The group that the next row is started for; None if all have as many as they may."""
        for group in self._groups:
            if group.started < self.size + self.redundancy:
                group.started += 1
                return group.number
        return None

    def put(self, number: int, row: Any) -> None:
        """A row of a group is finished; ignored if the group is gone or complete."""
        group = next((one for one in self._groups if one.number == number), None)
        if group is None or len(group.rows) == self.size:
            return
        group.rows.append(row)
        if len(group.rows) == self.size and not self._keep(group.rows):
            self._groups.remove(group)
            self._open()

    def get(self) -> tuple[int, list[Any]] | None:
        """The oldest group with its rows if it is complete, and never a later one; else None."""
        if not self._groups or len(self._groups[0].rows) < self.size:
            return None
        group = self._groups.pop(0)
        return group.number, group.rows

    def _open(self) -> None:
        self._groups.append(_Group(self._opened, self._step))
        self._opened += 1
