"""Replies of judges on disk, so that nobody is asked twice, and a resumed run is told the same."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rlvr_jax.judges.calls import Question, Reply


class Known(NamedTuple):
    """A reply with the step in which it came."""

    step: int
    reply: Reply


def key_of(identity: str, question: Question) -> str:
    """The hash of who is asked, what is asked, and the number of the try."""
    told = json.dumps([identity, [dict(m) for m in question.messages], question.attempt])
    return hashlib.sha256(told.encode()).hexdigest()


class Replies:
    """Replies by their keys, in memory and in a file of JSON lines that only grows.

    A reply is used from its step on. A failure is used in its own step alone: later ones ask again,
    and what they are told does not change what the earlier step was told. What nobody was asked, as
    the budget was used up, is written down only where some of it is left behind the step, of
    processes that had a share each: else a resumed run finds it used up, too. The file holds no
    address and no key of a server, and no prompt: hashes stand for them.

    Args:
      path: of the file; None: memory alone.
      writes: False on processes that only read it.
    Raises:
      ValueError: a line that is not of such a file. A last line that was cut off is left out.
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
        """What a step is told; None: it has to ask."""
        found = None
        for known in self._known.get(key, ()):
            if known.step <= step:
                found = known
        if found is not None and found.reply.text is None and found.step < step:
            return None
        return found

    def counted(self, key: str, step: int) -> bool:
        """Whether what a step is told of a question came before it, or was told of by this function
        already: what a reply has cost is counted once."""
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
        shares: int = 1,
    ) -> None:
        """Remembers the replies of a step, on disk when this returns.

        Args:
          budget, shares: of which questions were left over; see `left`.
        """
        for key, reply in zip(keys, replies, strict=True):
            self._add(key, Known(step, reply))
        used_up = 0 in self.left(*budget, shares).values()
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
        """Takes in all whole lines, and gives them."""
        text = path.read_bytes()
        whole = text[: text.rfind(b"\n") + 1]
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                told = json.loads(line)
                reply = Reply(*(told[name] for name in Reply._fields))
                self._add(told["key"], Known(told["step"], reply))
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(
                    f"Replies: {path} must hold replies of judges, got line {number} {line[:80]!r}"
                ) from error
        return whole

    def left(self, calls: int | None, tokens: int | None, shares: int = 1) -> dict[str, int | None]:
        """What is left of a budget, of which each of some processes has a share."""

        def share(most, spent):
            return None if most is None else max(0, most - spent) // shares

        return {"calls": share(calls, self.calls), "tokens": share(tokens, self.tokens)}
