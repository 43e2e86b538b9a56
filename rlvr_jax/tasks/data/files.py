"""Files: tasks from tables of questions, in files or in Python.

    load("jsonl:questions.jsonl")
    load("csv:part_*.csv.gz", columns={"prompt": "question", "answer": "result"})
    load("parquet:~/DAPO-Math-17k", drop_contradictions=True)
    from_rows(datasets.load_from_disk("folder"))
    from_rows(rows, verify=from_trl(reward))

    {"prompt": "What is 3/4 of 20?", "answer": "15"}
    {"prompt": "Solve x^2 = 4.", "answer": "{-2, 2}", "kind": "algebra", "gold": "\\\\boxed{2, -2}"}

`paths` finds the files of a path, `columns` the columns, and `mathematics` drops questions that
cannot be graded. An answer is a text, a number, or a list of alternatives. Metrics are also
reported by `kind`. `gold` is a response that must have full reward; without one it is made from
the answer. Rows that cannot be used and repeated questions are left out; warnings count them.
"""

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from rlvr_jax.tasks.answer_form import BOXED, instructed
from rlvr_jax.tasks.base import Task, Verify
from rlvr_jax.tasks.data.columns import Columns, named_columns, recognised
from rlvr_jax.tasks.data.paths import find_files, listed
from rlvr_jax.tasks.data.questions import Collected, Placed, consistent, split_off, without
from rlvr_jax.tasks.data.tables import rows_of
from rlvr_jax.tasks.mathematics import LEFT_OUT, mathematics
from rlvr_jax.tasks.options import known_options, takes_options_of
from rlvr_jax.tasks.settings import (
    AnswerAfter,
    DropContradictions,
    HeldOutFraction,
    Instruction,
    ResponseTokens,
)
from rlvr_jax.verifiers.maths.verifier import MathVerifier

__all__ = ["arrow", "csv", "from_rows", "json", "jsonl", "parquet"]

_LOOKED_AT = 100  # number of rows from which columns are recognised
_SHARE = 0.1
_BUDGET = 1024


@takes_options_of(MathVerifier, leave_out=LEFT_OUT)
def from_files(
    kind: str,
    path: str,
    test_path: str | None = None,
    columns: Mapping[str, str] | Sequence[str] | None = None,
    answer_after: AnswerAfter = None,
    held_out: HeldOutFraction = _SHARE,
    instruction: Instruction = BOXED,
    response_tokens: ResponseTokens = _BUDGET,
    drop_contradictions: DropContradictions = False,
    **grading: Any,
) -> Task:
    """The questions of files as a task that the mathematics verifier grades.

    Args:
      kind: kind of the files: "jsonl", "json", "csv" (also tabs and semicolons), "parquet",
        "arrow".
      path: training questions. It also has the test questions if neither `test_path` nor the files'
        names separate them.
      test_path: files of test questions. Those that are also in `path` are left out of the train
        split, and a warning counts them.
      columns: names of columns that are not those of a known schema: {"prompt": "question",
        "answer": "result"}; also kind, gold, solution (its steps), hints and level.
      held_out: used without test questions. A question stays in its split when rows are added or
        moved, or the instruction changes.
      **grading: options of `MathVerifier`.
    Raises:
      ValueError: a fraction is outside (0, 1); files are missing, unreadable or empty; columns are
        missing; questions contradict themselves; a gold is incorrect; a split is empty.
    """
    name, named = f"{kind}:{path}", named_columns(columns)
    reading = _Reading(kind, named, answer_after)
    files = find_files(kind, path)
    notes, evaluated, where = list(files.notes), files.test, name
    if test_path is not None:
        found, where = find_files(kind, test_path), f"{kind}:{test_path}"
        evaluated = found.test or found.train
        notes = [f"test_path is given, so {listed(files.test)} is not read"] if files.test else []
    test = reading.files(evaluated, where) if evaluated else None
    train = reading.files(files.train, name)
    return mathematics(
        name,
        train,
        test,
        response_tokens,
        held_out=held_out,
        instruction=instruction,
        drop_contradictions=drop_contradictions,
        notes=[*notes, *reading.notes],
        **grading,
    )


def _of_kind(kind: str) -> Callable[..., Task]:
    function = functools.partial(from_files, kind)
    return takes_options_of(MathVerifier, leave_out=LEFT_OUT)(function)


jsonl: Callable[..., Task] = _of_kind("jsonl")
json: Callable[..., Task] = _of_kind("json")
csv: Callable[..., Task] = _of_kind("csv")
parquet: Callable[..., Task] = _of_kind("parquet")
arrow: Callable[..., Task] = _of_kind("arrow")


@takes_options_of(MathVerifier, leave_out=LEFT_OUT)
def from_rows(
    rows: Iterable[Mapping[str, Any]] | Mapping[str, Iterable[Mapping[str, Any]]],
    test_rows: Iterable[Mapping[str, Any]] | None = None,
    *,
    name: str = "rows",
    columns: Mapping[str, str] | Sequence[str] | None = None,
    verify: Verify | None = None,
    answer_after: AnswerAfter = None,
    held_out: HeldOutFraction = _SHARE,
    instruction: Instruction | None = None,
    response_tokens: ResponseTokens = _BUDGET,
    drop_contradictions: DropContradictions = False,
    **grading: Any,
) -> Task:
    """The questions in dictionaries as a task: a data set of `datasets`, a list, a generator.

    Examples:
      >>> from rlvr_jax import tasks
      >>> rows = [{"prompt": f"{a} + 1 =", "answer": str(a + 1)} for a in range(40)]
      >>> task = tasks.from_rows(rows, held_out=0.2)
      >>> len(task.train) + len(task.test)
      40

    Args:
      rows: one dictionary per question. Or tables by split ("train", and "test" or "validation"),
        as `datasets` loads them.
      test_rows: test questions; None: those of the split, or a fraction of `rows`.
      name: name of the task.
      verify: replaces the mathematics verifier, see `rewards`. An answer may then be any value or
        missing, and `Prompt.meta` has all columns except the prompt. If `from_trl` wraps several
        functions, their rewards are the task's.
      instruction: added to each question; None: a request for a box, or nothing with `verify`.
      columns, held_out, **grading: as for files.
    Raises:
      ValueError: as for files; rows are not dictionaries; options of the mathematics verifier with
        another `verify`.
    """
    unknown = sorted(set(grading) - set(known_options(from_rows)))
    if unknown:
        raise ValueError(
            f"from_rows: options must be among {', '.join(known_options(from_rows))}, got"
            f" {', '.join(unknown)}"
        )
    if verify is not None and (grading or answer_after is not None):
        given = sorted([*grading, *["answer_after"] * (answer_after is not None)])
        raise ValueError(
            f"from_rows: {', '.join(given)} must be left out with a custom verify, which reads the"
            f" answers itself, got {', '.join(given)}"
        )
    if isinstance(rows, Mapping):
        splits = cast(Mapping[str, Iterable[Mapping[str, Any]]], rows)
        if "train" not in splits:
            raise ValueError(f"from_rows: rows by split must have 'train', got {sorted(splits)}")
        if test_rows is None:
            test_rows = splits.get("test", splits.get("validation"))
        rows = splits["train"]
    reading = _Reading(name, named_columns(columns), answer_after, verify is None)
    test = None if test_rows is None else reading.rows(test_rows, f"{name}, test")
    train = reading.rows(rows, name)
    if verify is None:
        return mathematics(
            name,
            train,
            test,
            response_tokens,
            held_out=held_out,
            instruction=BOXED if instruction is None else instruction,
            drop_contradictions=drop_contradictions,
            notes=reading.notes,
            **grading,
        )
    train = consistent(name, train, _equal, drop_contradictions)
    if test is None:
        train, test = split_off(name, train, held_out)
    else:
        test = consistent(name, test, _equal, drop_contradictions)
        train = without(train, test)
    prompts = ([instructed(p, instruction or "") for _, p in part] for part in (train, test))
    return Task(
        name,
        *prompts,
        verify=verify,
        response_tokens=response_tokens,
        rewards=getattr(verify, "rewards", ()),
        notes=tuple(reading.notes),
    )


def _equal(pairs: Sequence[tuple[Any, Any]]) -> list[bool]:
    return [first == second for first, second in pairs]


@dataclass
class _Reading:
    """Reads tables; `notes` reports how, once for all files that are read in the same way."""

    kind: str
    columns: Mapping[str, str]
    answer_after: str | None
    needs_answer: bool = True
    read: list[Columns] = field(default_factory=list)

    @property
    def notes(self) -> list[str]:
        """Sentences about the ways in which the columns were read."""
        ways: dict[tuple, Columns] = {}
        for columns in self.read:
            key = (tuple(columns.of.items()), columns.schema)
            known = ways.setdefault(key, columns)
            if known is not columns:
                known.add(columns)
        return [note for columns in ways.values() if (note := columns.note())]

    def files(self, files: Sequence[Path], name: str) -> list[Placed]:
        """The questions of some files."""
        collected = Collected(name)
        for file in files:
            start = [row for _, row in itertools.islice(rows_of(self.kind, file), _LOOKED_AT)]
            if start:
                columns = self._recognised(start, f"{self.kind}: {file}")
                needed = {column.partition(".")[0] for column in columns.of.values()}
                self._collect(rows_of(self.kind, file, sorted(needed)), columns, collected)
        if not collected.count:
            raise ValueError(
                f"{self.kind}: path must have at least one question, got none in"
                f" {', '.join(map(str, files))}"
            )
        collected.warn()
        return collected.rows

    def rows(self, rows: Iterable[Mapping[str, Any]], name: str) -> list[Placed]:
        """The questions of dictionaries."""
        placed = ((f"row {number}", row) for number, row in enumerate(rows, start=1))
        start = list(itertools.islice(placed, _LOOKED_AT))
        for place, row in start:
            _check_row(name, place, row)
        if not start:
            raise ValueError(f"{name}: rows must have at least one question, got none")
        columns = self._recognised([row for _, row in start], name)
        collected = Collected(name)
        self._collect(itertools.chain(start, placed), columns, collected)
        collected.warn()
        return collected.rows

    def _recognised(self, start: Sequence[Mapping[str, Any]], where: str) -> Columns:
        columns = recognised(start, self.columns, where, self.answer_after, self.needs_answer)
        self.read.append(columns)
        return columns

    def _collect(
        self,
        rows: Iterator[tuple[str, Mapping[str, Any]]],
        columns: Columns,
        collected: Collected,
    ) -> None:
        for place, row in rows:
            _check_row(collected.name, place, row)
            try:
                prompt = columns.prompt(row)
            except ValueError as error:
                collected.leave_out(place, str(error))
            else:
                collected.add(place, prompt)


def _check_row(name: str, place: str, row: Any) -> None:
    if not isinstance(row, Mapping):
        hint = ""
        if isinstance(row, str):
            hint = ". For a DataFrame use frame.to_dict('records')"
        raise ValueError(
            f"{name}: {place}: rows must be dictionaries, got {type(row).__name__}{hint}"
        )
