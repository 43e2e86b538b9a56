"""Replies of judges on disk, so that a resumed run has the same replies without new requests."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rlvr_jax.judges.calls import Question, Reply


class Known(NamedTuple):
    """A reply and its step."""

    step: int
    reply: Reply


def key_of(identity: str, question: Question) -> str:
    """The hash of a call's identity, a chat and the number of the attempt."""
    text = json.dumps([identity, [dict(m) for m in question.messages], question.attempt])
    return hashlib.sha256(text.encode()).hexdigest()


class Replies:
    """Replies by their keys, in memory and in a file of JSON lines to which lines are appended.

    A reply is used from its step on, a failure only in its step. Later steps send a new request,
    which does not change the earlier step. A question may not be sent because the budget is used
    up. This is written only if some budget is left after the step (processes have equal fractions
    of it); else a resumed run finds the budget used up. The file has hashes instead of addresses,
    keys and prompts.

    Args:
      path: path of the file; None: only in memory.
      writes: False for processes that only read it.
    Raises:
      ValueError: a line has another form. An incomplete last line is ignored.
    """

    def __init__(self, path: Path | None = None, writes: bool = True):
        self._path = path
        self._writes = writes
        self._known: dict[str, list[Known]] = {}
        self._counted: tuple[int, set[str]] = (0, set())
        self.calls: int = 0
        self.tokens: int = 0
        whole = self._read(path) if path is not None and path.exists() else b""
        if path is not None and writes and path.exists() and path.stat().st_size > len(whole):
            path.write_bytes(whole)

    def find(self, key: str, step: int) -> Known | None:
        """The reply that a step uses; None if it must be requested."""
        known = [one for one in self._known.get(key, ()) if one.step <= step]
        if not known or (known[-1].reply.text is None and known[-1].step < step):
            return None
        return known[-1]

    def counted(self, key: str, step: int) -> bool:
        """Whether an earlier step, or an earlier call of this, has counted the cost of a reply."""
        if self._counted[0] != step:
            self._counted = (step, set())
        known, counted = self.find(key, step), self._counted[1]
        again = known is None or known.step < step or key in counted
        counted.add(key)
        return again

    def keep(
        self,
        keys: Sequence[str],
        replies: Sequence[Reply],
        step: int,
        budget: tuple[int | None, int | None] = (None, None),
        processes: int = 1,
    ) -> None:
        """Stores the replies of a step; they are on disk when this returns.

        Args:
          budget, processes: as for `left`.
        """
        for key, reply in zip(keys, replies, strict=True):
            self._add(key, Known(step, reply))
        used_up = 0 in self.left(*budget, processes).values()
        lines = [
            json.dumps({"key": key, "step": step, **reply._asdict()})
            for key, reply in zip(keys, replies, strict=True)
            if reply.calls or not used_up
        ]
        if self._path is None or not self._writes or not lines:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write("".join(line + "\n" for line in lines))

    def _add(self, key, known):
        before = self._known.setdefault(key, [])
        if any(each.step == known.step for each in before):
            return
        before.append(known)
        before.sort(key=lambda each: each.step)
        self.calls += known.reply.calls
        self.tokens += known.reply.tokens

    def _read(self, path: Path) -> bytes:
        """Reads all complete lines, and returns them."""
        text = path.read_bytes()
        whole = text[: text.rfind(b"\n") + 1]
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                record = json.loads(line)
                reply = Reply(*(record[name] for name in Reply._fields))
                self._add(record["key"], Known(record["step"], reply))
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(
                    f"Replies: {path} must hold replies of judges, got line {number} {line[:80]!r}"
                ) from error
        return whole

    def left(
        self, calls: int | None, tokens: int | None, processes: int = 1
    ) -> dict[str, int | None]:
        """The remaining budget of this process; several processes have equal fractions of it."""

        def part(most, spent):
            return None if most is None else max(0, most - spent) // processes

        return {"calls": part(calls, self.calls), "tokens": part(tokens, self.tokens)}
