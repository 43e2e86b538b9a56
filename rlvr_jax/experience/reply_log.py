"""The log of replies of environments, so that a resumed step gets the same replies."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class ReplyLog:
    """Replies by (step, key), in memory and in a file of JSON lines.

    A reply may depend on the clock (a time limit) or on another system (a search). The log has the
    steps since the last checkpoint. A run that is killed within a step samples the step again and
    reads the same replies.

    Args:
      path: of the file; None: only in memory.
      writes: False on processes that only read it.
    Raises:
      ValueError: a complete line is invalid. An incomplete last line is ignored.
    """

    def __init__(self, path: Path | None = None, writes: bool = True):
        self._path, self._writes = path, writes
        self._known: dict[str, tuple[int, Mapping[str, Any]]] = {}
        if path is not None and path.exists():
            self._read(path)
            if writes:
                self._rewrite()

    def find(self, key: str) -> Mapping[str, Any] | None:
        """A logged reply, or None."""
        known = self._known.get(key)
        return known and known[1]

    def store(self, step: int, replies: Mapping[str, Mapping[str, Any]]) -> None:
        """Stores replies of a step by their keys; they are on disk when this returns.

        Args:
          replies: JSON values.
        """
        new = {key: reply for key, reply in replies.items() if key not in self._known}
        self._known |= {key: (step, reply) for key, reply in new.items()}
        if self._path is not None and self._writes and new:
            with self._path.open("a", encoding="utf-8") as file:
                file.writelines(self._line(key, step, reply) for key, reply in new.items())

    def forget(self, step: int) -> None:
        """Removes replies of steps before `step`, the earliest step at which a run may resume."""
        later = {key: known for key, known in self._known.items() if known[0] >= step}
        if len(later) < len(self._known):
            self._known = later
            self._rewrite()

    @staticmethod
    def _line(key, step, reply) -> str:
        return json.dumps({"key": key, "step": step, "reply": dict(reply)}) + "\n"

    def _rewrite(self) -> None:
        if self._path is None or not self._writes:
            return
        lines = [self._line(key, *known) for key, known in self._known.items()]
        beside = self._path.with_suffix(".new")
        beside.write_text("".join(lines), encoding="utf-8")
        beside.replace(self._path)

    def _read(self, path: Path) -> None:
        text = path.read_text(encoding="utf-8")
        for number, line in enumerate(text[: text.rfind("\n") + 1].splitlines(), 1):
            try:
                found = json.loads(line)
                self._known[found["key"]] = (found["step"], dict(found["reply"]))
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(
                    f"ReplyLog: {path} must hold replies of environments, got line {number}"
                    f" {line[:80]!r}"
                ) from error
