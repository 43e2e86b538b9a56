"""Rollouts with their prompt requests and grades."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import numpy as np

from rlvr_jax.experience.prompts import responses
from rlvr_jax.experience.requests import SampleRequest, groups_of
from rlvr_jax.objectives import GIVEN
from rlvr_jax.tasks import Grade, Prompt, Response
from rlvr_jax.types import Rollouts, replace
from rlvr_jax.types.records import PADDED_AXES
from rlvr_jax.types.rollouts import kind_and_axes, missing_number

ROUNDING = 1e-6
"""A mean of outcomes or rewards (float32) this close to a threshold counts as equal to it."""


def decided(grades: Sequence[Grade]) -> np.ndarray:
    """Whether each grade has an outcome (is not ungraded), bool [B]."""
    return np.array([grade.outcome is not None for grade in grades], bool)


def given_tokens(rollouts: Rollouts) -> np.ndarray:
    """Number of given tokens of each response, int [B]."""
    if "origin" not in rollouts.records:
        return np.zeros(len(rollouts.group), int)
    return np.sum(rollouts.records["origin"] == GIVEN, axis=1)


@dataclass(frozen=True)
class Batch:
    """Rollouts as numpy arrays, with the request and the grade of each row.

    Rows of a group are consecutive; every process has all rows.

    Fields:
      rollouts: numbers of the rows; `group` numbers the groups.
      requests: the request of each row.
      grades: the grade of each row; empty before grading.
      further: batches with advantages that are trained after this one, each in separate updates.
      tokenizer: decodes tokens; None where no part reads text.
      brought: grades by an environment, with None for rows that the verifier grades. Empty: the
        verifier grades all rows.
      sample_seconds, verify_seconds: wall times of a sampled batch, in seconds.
    """

    rollouts: Rollouts
    requests: Sequence[SampleRequest]
    grades: Sequence[Grade]
    tokenizer: Any = None
    further: Sequence[Batch] = ()
    brought: Sequence[Grade | None] = ()
    sample_seconds: float = 0.0
    verify_seconds: float = 0.0

    def __len__(self) -> int:
        return len(self.requests)

    @property
    def prompts(self) -> list[Prompt]:
        """The prompt of each row."""
        return [request.prompt for request in self.requests]

    @property
    def responses(self) -> list[Response]:
        """All responses as text; decoded at each access, as a process only reads its own rows."""
        return responses(self.tokenizer, self.rollouts)

    @property
    def decided(self) -> np.ndarray:
        """Whether each row is graded, bool [B]; ungraded rows have outcome and reward 0."""
        return decided(self.grades)

    @cached_property
    def groups(self) -> list[np.ndarray]:
        """The rows of each group, in order."""
        group = np.asarray(self.rollouts.group)
        starts = np.flatnonzero(np.diff(group, prepend=group[:1] - 1))
        return np.split(np.arange(len(group)), starts[1:]) if len(group) else []

    @property
    def last_of_trace(self) -> np.ndarray:
        """The last row of each row's trace, int [B]; the row itself if it is a whole response."""
        own = np.arange(len(self))
        trace = self.rollouts.records.get("trace")
        if trace is None:
            return own
        last = dict(zip(trace.tolist(), own.tolist(), strict=True))
        return np.array([last[t] if t >= 0 else row for row, t in enumerate(trace.tolist())], int)

    @property
    def answers(self) -> Batch:
        """The last row of each response."""
        if "trace" not in self.rollouts.records:
            return self
        return self.take(np.unique(self.last_of_trace))

    def outcomes(self) -> np.ndarray:
        """Outcomes of the responses, [G, N]; NaN if ungraded, and beyond the rows of a group."""
        answers = self.answers
        known = np.where(answers.decided, answers.rollouts.outcome, np.nan)
        return answers.by_group(known, np.nan)

    def by_group(self, values: np.ndarray, filling: Any) -> np.ndarray:
        """Numbers of rows [B] as [G, N]; `filling` is beyond the rows of a group."""
        most = max(map(len, self.groups), default=0)
        table = np.full((len(self.groups), most), filling, np.asarray(values).dtype)
        for place, rows in zip(table, self.groups, strict=True):
            place[: len(rows)] = values[rows]
        return table

    def requests_of(self, groups: np.ndarray) -> list[SampleRequest]:
        """The request of each group that is True in `groups`, bool [G]."""
        return [
            self.requests[rows[0]] for rows, there in zip(self.groups, groups, strict=True) if there
        ]

    def take(self, rows: np.ndarray) -> Batch:
        """These rows, in this order; the numbers of their groups do not change."""
        rows = np.asarray(rows, int)
        return Batch(
            jax.tree.map(lambda x: x[rows], self.rollouts),
            [self.requests[row] for row in rows],
            [self.grades[row] for row in rows] if self.grades else (),
            self.tokenizer,
            self.further,
            [self.brought[row] for row in rows] if self.brought else (),
        )

    def with_rollouts(self, **changes: Any) -> Batch:
        """The same rows with other records."""
        return replace(self, rollouts=self.rollouts.replace(**changes))

    def graded(self, grades: Sequence[Grade]) -> Batch:
        """The rows with these grades, and with their outcomes and rewards; 0 where ungraded."""
        known = {
            name: np.array([getattr(one, name) or 0 for one in grades], own.dtype)
            for name, own in (("outcome", self.rollouts.outcome), ("reward", self.rollouts.reward))
        }
        return replace(self.with_rollouts(**known, valid=decided(grades)), grades=grades)

    def rewarded(self, reward: Any) -> Batch:
        """The rows with other rewards, [B]; grades do not change.

        An ungraded row, or one whose reward is NaN, gets the reward 0 and is not valid.
        """
        valid = self.decided & ~np.isnan(reward)
        known = np.where(valid, reward, 0).astype(self.rollouts.reward.dtype)
        return self.with_rollouts(reward=known, valid=valid)

    def without(self, rows: np.ndarray) -> Batch:
        """The same rows, without training on those that are True in `rows`, bool [B].

        Their mask is cleared, and they are not imitated.
        """
        rows, supervised = np.asarray(rows), self.rollouts.records.get("supervised")
        return self.with_rollouts(
            mask=self.rollouts.mask & ~rows[:, None],
            supervised=None if supervised is None else supervised & ~rows,
        )

    def with_groups(self, groups: np.ndarray, sampled: Batch, place: str = "replace") -> Batch:
        """The batch with other rows in some groups.

        Args:
          groups: bool [G].
          sampled: the new groups, in order, one for each True of `groups`.
          place: "replace" the rows, "append" to them, or "prepend".
        Raises:
          ValueError: the number of groups differs, or the place is unknown.
        """
        if place not in ("replace", "append", "prepend"):
            raise ValueError(
                f"with_groups: place must be 'replace', 'append' or 'prepend', got {place!r}"
            )
        wanted = np.flatnonzero(groups)
        if len(wanted) != len(sampled.groups):
            raise ValueError(
                f"with_groups: sampled must have {len(wanted)} groups, got {len(sampled.groups)}"
            )
        new = dict(zip(wanted.tolist(), sampled.groups, strict=True))
        both = concatenate([self, sampled])
        order, group = [], []
        for number, rows in enumerate(self.groups):
            own = [] if number in new and place == "replace" else rows.tolist()
            others = [len(self) + row for row in new.get(number, ())]
            own = others + own if place == "prepend" else own + others
            order += own
            group += [number] * len(own)
        taken = both.take(np.array(order))
        return taken.with_rollouts(group=np.array(group, np.int32)).renumbered()

    def renumbered(self) -> Batch:
        """The batch with new numbers of groups and rows; parents that it lacks become -1."""
        sizes = [len(rows) for rows in self.groups]
        return self.with_rollouts(
            group=np.repeat(np.arange(len(sizes), dtype=np.int32), sizes),
            rollout_id=np.arange(len(self), dtype=np.int32),
            parent=_parents(self.rollouts),
        )


def concatenate(parts: Sequence[Batch]) -> Batch:
    """Concatenates batches, with new numbers of rows, groups and traces, in order.

    Optional records that one of the batches lacks are filled with 0 (False, ungraded) there.
    """
    if len(parts) == 1:
        return parts[0]
    offsets, parents, start, first = [], [], 0, 0
    for part in parts:
        numbered = part.renumbered().rollouts
        offsets.append(numbered.group + np.int32(start))
        parents.append(np.where(numbered.parent < 0, numbered.parent, numbered.parent + first))
        start += len(part.groups)
        first += len(part)
    rollouts = _joined(_with_own_traces([part.rollouts for part in parts]))
    rollouts = rollouts.replace(
        group=np.concatenate(offsets),
        rollout_id=np.arange(len(rollouts.group), dtype=np.int32),
        parent=np.concatenate(parents).astype(np.int32),
    )
    return Batch(
        rollouts,
        [request for part in parts for request in part.requests],
        [grade for part in parts for grade in part.grades],
        parts[0].tokenizer,
        [more for part in parts for more in part.further],
        [grade for part in parts for grade in part.brought or [None] * len(part)]
        if any(part.brought for part in parts)
        else (),
    )


def _parents(rollouts: Rollouts) -> np.ndarray:
    """The position of each row's parent; -1 without one, or if it is not in the batch."""
    if np.all(rollouts.parent < 0):
        return rollouts.parent
    place = {number: row for row, number in enumerate(np.asarray(rollouts.rollout_id).tolist())}
    return np.array([place.get(number, -1) for number in rollouts.parent.tolist()], np.int32)


def _with_own_traces(parts: Sequence[Rollouts]) -> list[Rollouts]:
    """Records in which the numbers of traces differ between the batches."""
    found, start = [], 0
    for part in parts:
        if (trace := part.records.get("trace")) is not None:
            trace = np.where(trace < 0, trace, trace + np.int32(start))
            start = max(start, int(trace.max(initial=-1)) + 1)
            part = part.replace(trace=trace)
        found.append(part)
    return found


def _joined(parts: Sequence[Rollouts]) -> Rollouts:
    """Rows of several records; shorter prompts and second prompts are padded."""
    known = {}
    for name in dict.fromkeys(name for part in parts for name in part.arrays):
        axes, missing = kind_and_axes(name)[1], missing_number(name)
        like = next(array for part in parts if (array := part.get(name)) is not None)
        arrays = [
            np.full((len(part.group), *like.shape[1:]), missing, like.dtype)
            if (array := part.get(name)) is None
            else array
            for part in parts
        ]
        # The prompt's width, because a batch without this record may have the longest prompt.
        of = [part.prompt_tokens for part in parts] if axes[1:2] == ("P",) else arrays
        if axes[1:2] and axes[1] in PADDED_AXES:
            width = max(array.shape[1] for array in of)
            more = [(0, 0)] * (like.ndim - 2)
            arrays = [
                np.pad(x, [(0, 0), (0, width - x.shape[1]), *more], constant_values=missing)
                for x in arrays
            ]
        known[name] = np.concatenate(arrays)
    return Rollouts.of_arrays(known)


GroupTest = Callable[[np.ndarray], np.ndarray]
"""(outcomes [G, N], NaN if ungraded) -> bool [G]."""


def by_trace(
    parts: Sequence[Batch], traces: np.ndarray, requests: Sequence[SampleRequest]
) -> Batch:
    """The segments of each response in order, responses in the order of the requests.

    Args:
      traces: number of the response, for each row of the parts.
    """
    order = np.argsort(traces, kind="stable")
    trace = traces[order].astype(np.int32)
    group_of = groups_of(requests)
    whole = concatenate(parts).take(order)
    whole = whole.with_rollouts(trace=trace, group=group_of[trace]).renumbered()
    truncated = whole.rollouts.truncated[whole.last_of_trace]
    return replace(
        whole.with_rollouts(truncated=truncated),
        requests=[requests[group] for group in group_of[trace]],
        sample_seconds=sum(part.sample_seconds for part in parts),
    )
