"""Columns: which of a table's columns are the question and the answer.

Columns are named by the user, or recognised from published data sets:

    verl, DAPO-Math     prompt (messages), reward_model.ground_truth, data_source (the kind)
    ours                prompt, answer; kind and gold if they are there
    TRL                 prompt, solution
    GSM8K               question, answer (the text after ####)
    Open-R1, MATH-500   problem, answer
    MATH                problem, solution (the last box)

A dot goes into a structure. Names may differ from these only in case.
"""

from __future__ import annotations

import difflib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rlvr_jax.tasks.base import AFTER, Prompt, is_prefill
from rlvr_jax.tasks.data import cells
from rlvr_jax.tasks.options import pairs_of

FIELDS = ("prompt", "answer", "kind", "gold", "solution", "hints", "level")
"""The roles of columns: see `Prompt`; "level" goes to its meta."""

_LATE = ("kind", "gold")
_PROMPTS = ("prompt", "problem", "question", "query", "messages", "conversations")
_CONVERSATIONS = ("messages", "conversations")
_ANSWERS = ("reward_model.ground_truth", "answer", "final_answer", "ground_truth", "solution")
_MARKED = "GSM8K"  # many tables have its columns; its answers are after ####
_KNOWN = {
    ("prompt", "reward_model.ground_truth"): "verl",
    ("prompt", "solution"): "TRL",
    ("question", "answer"): _MARKED,
    ("problem", "answer"): "Open-R1 and MATH-500",
    ("problem", "solution"): "MATH",
}


def named_columns(columns: Mapping[str, str] | Iterable[str] | str | None) -> dict[str, str]:
    """The user's names of columns: {"prompt": "question"}, or prompt=question as text.

    Raises:
      ValueError: a name on the left is not in `FIELDS`, or a part has no =.
    """
    if columns is None:
        return {}
    if not isinstance(columns, Mapping):
        texts = [columns] if isinstance(columns, str) else list(columns)
        columns = pairs_of(texts, "columns")
    for name in columns:
        if name not in FIELDS:
            close = difflib.get_close_matches(name, FIELDS, n=1)
            hint = f"; closest: {close[0]}" if close else ""
            raise ValueError(f"columns must be among {', '.join(FIELDS)}, got {name!r}{hint}")
    return dict(columns)


@dataclass
class Columns:
    """The reader of the rows of one table.

    Fields:
      of: the column of each field that the table has.
      schema: name of a known data set with these columns; "" for other names.
      unread: columns that are not read.
      answer_after: mark before the answer; None: where `cells.final_part` finds the answer.
      needs_answer: leave out rows without an answer; else other columns go to the prompts' meta.
      found: counts of how rows were read, for people.
    """

    of: dict[str, str]
    schema: str = ""
    unread: tuple[str, ...] = ()
    answer_after: str | None = None
    needs_answer: bool = True
    found: Counter[str] = field(default_factory=Counter)

    def prompt(self, row: Mapping[str, Any]) -> Prompt:
        """The prompt of a row.

        Raises:
          ValueError: the row cannot be used; the message is the end of "N rows …".
        """
        chat = self._cell(row, "prompt", cells.messages)
        if chat.question is None:
            raise ValueError("without a prompt")
        turns = self._turns(chat)
        meta = {}
        if (level := self._cell(row, "level", cells.level)) is not None:
            meta["level"] = level
        if not self.needs_answer:
            top = self.of["prompt"].partition(".")[0]
            meta |= {name: cells.plain(value) for name, value in row.items() if name != top}
        hints = self._cell(row, "hints", cells.answers) or ()
        return Prompt(
            text=chat.question,
            answer=self._answer(row),
            kind=self._cell(row, "kind", cells.text) or "",
            gold=self._cell(row, "gold", cells.text),
            messages=turns,
            solution=self._cell(row, "solution", cells.steps) or (),
            hints=(hints,) if isinstance(hints, str) else hints,
            meta=meta,
        )

    def note(self) -> str:
        """How the rows were read: schema, columns and counts; "" if the table has exactly our own
        columns."""
        renamed = any(name != column for name, column in self.of.items())
        if not (self.schema or self.unread or self.found or renamed):
            return ""
        marked = any("####" in what for what in self.found)
        whose = f" as {self.schema}'s" if self.schema and (self.schema != _MARKED or marked) else ""
        named = ", ".join(f"{name}={column}" for name, column in self.of.items())
        counts = "".join(f"; {number} {what}" for what, number in self.found.items())
        unread = f"; not read: {', '.join(self.unread)}" if self.unread else ""
        return f"columns are read{whose}: {named}{counts}{unread}"

    def add(self, other: Columns) -> None:
        """Adds the counts of another table that is read in the same way."""
        self.found += other.found
        self.unread = tuple(dict.fromkeys((*self.unread, *other.unread)))

    def _turns(self, chat: cells.Chat) -> list[dict[str, Any]]:
        """The messages of a prompt. Those after the user's last message are part of a prompt, but
        not of a conversation, which ends with the answer."""
        if chat.unread:
            self.found[f"have messages with {', '.join(chat.unread)}, which is not shown"] += 1
        if not chat.behind:
            return chat.before
        if self.of["prompt"].lower() in _CONVERSATIONS:
            self.found["end with turns after the user's last one, which are not shown"] += 1
            return chat.before
        if is_prefill(chat.behind[-1]):
            self.found["end with a turn of the assistant, which the response continues"] += 1
        return [*chat.before, *({**turn, AFTER: True} for turn in chat.behind)]

    def _answer(self, row: Mapping[str, Any]) -> Any:
        if not self.needs_answer:
            return cells.plain(_look_up(row, self.of["answer"])) if "answer" in self.of else None
        answers = self._cell(row, "answer", cells.answers)
        if answers is None:
            raise ValueError("without an answer")
        parts = []
        for answer in [answers] if isinstance(answers, str) else answers:
            part, how = cells.final_part(answer, self.answer_after)
            if part is None:
                raise ValueError(f"without {self.answer_after!r} in the answer")
            if how:
                self.found[f"answers are {how}"] += 1
            parts += [part] if part else []
        if not parts:
            raise ValueError("without an answer")
        return parts[0] if len(parts) == 1 else parts

    def _cell(self, row: Mapping[str, Any], name: str, read: Callable[[Any], Any]) -> Any:
        # A column for these may first occur in a row after those that were inspected.
        late = name if name in _LATE and name not in self.of.values() else None
        column = self.of.get(name, late)
        try:
            return read(None if column is None else _look_up(row, column))
        except UnicodeError:
            raise ValueError(f"whose {name} has half a character") from None
        except ValueError as error:
            raise ValueError(f"whose {name} is of another kind ({error})") from None


def recognised(
    rows: Sequence[Mapping[str, Any]],
    given: Mapping[str, str],
    where: str,
    answer_after: str | None = None,
    needs_answer: bool = True,
) -> Columns:
    """The columns of a table, from some of its rows.

    Args:
      rows: the first rows.
      given: columns that the user names.
      where: name of the table, for errors.
      answer_after: text before the answer in the column of the answer; None: all of it.
      needs_answer: False: read a table without answers, and store all other columns.
    Raises:
      ValueError: no row has a named column, or no column can be the prompt or the answer.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    of = {}
    for name, column in given.items():
        of[name] = _present(rows, names, column)
        if of[name] is None:
            close = difflib.get_close_matches(column, names, n=1)
            hint = f"; closest: {close[0]}" if close else ""
            raise ValueError(
                f"{where}: columns must name columns of the table ({', '.join(names)}), got"
                f" {name}={column}{hint}"
            )
    taken = {column.lower() for column in of.values()}
    for name, known in (("prompt", _PROMPTS), ("answer", _ANSWERS)):
        free = (column for column in known if column not in taken)
        found = next((c for column in free if (c := _present(rows, names, column))), None)
        if name not in of and found is None and (name == "prompt" or needs_answer):
            raise ValueError(
                f"{where}: the table must have a column for the {name} ({', '.join(known)}, or a"
                f" column named with --columns prompt=question,answer=solution), got"
                f" {', '.join(names) or 'none'}"
            )
        if found is not None:
            of.setdefault(name, found)
    schema = _KNOWN.get((of["prompt"].lower(), of.get("answer", "").lower()), "")
    sources = {str(row.get("data_source")) for row in rows}
    if schema == "verl" and any("dapo" in source.lower() for source in sources):
        schema = "DAPO-Math"
    kind = "data_source" if schema in ("verl", "DAPO-Math") else "kind"
    for name, column in (("kind", kind), ("gold", "gold")):
        if name not in of and column not in taken and (found := _present(rows, names, column)):
            of[name] = found
    used = {column.partition(".")[0] for column in of.values()} | set(of.values())
    unread = tuple(name for name in names if name not in used)
    return Columns(
        of=of,
        schema=schema,
        unread=unread if needs_answer else (),
        answer_after=answer_after,
        needs_answer=needs_answer,
    )


def _present(rows: Sequence[Mapping[str, Any]], names: Sequence[str], column: str) -> str | None:
    """The column in the table's spelling; None if the table does not have it."""
    if column in names:
        return column
    for name in names:
        if name.lower() == column.lower():
            return name
    head, dot, _ = column.partition(".")
    inside = any(_look_up(row, column, missing=...) is not ... for row in rows)
    return column if dot and head in names and inside else None


def _look_up(row: Mapping[str, Any], column: str, missing: Any = None) -> Any:
    """The value of a column; a dot goes into a structure, even into one that is written as JSON."""
    if column in row:
        return row[column]
    value: Any = row
    for part in column.split("."):
        if isinstance(value, str) and value.lstrip().startswith("{"):
            try:
                value = json.loads(value)
            except (ValueError, RecursionError):
                return missing
        if not isinstance(value, Mapping) or part not in value:
            return missing
        value = value[part]
    return value
