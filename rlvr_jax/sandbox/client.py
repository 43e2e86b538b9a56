"""The caller's side: programs in, outcomes out, servers in between."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rlvr_jax.sandbox import interpreter
from rlvr_jax.sandbox.connection import Server
from rlvr_jax.sandbox.layers import holds
from rlvr_jax.sandbox.limits import Limits, Outcome
from rlvr_jax.sandbox.task import written

_allowed = threading.Event()


def allow_unsafe_local() -> None:
    """From now on sandboxes of this process also run programs where the machine has nothing to keep
    them in (`--unsafe-local` of a run)."""
    _allowed.set()


class Sandbox:
    """Runs untrusted programs, each forked from an interpreter that is already there.

    A context manager; all methods may be called from any thread. Servers start when they are
    needed, and one that was lost is replaced.

    Args:
      limits: of a program that has no others.
      workers: programs at a time; further calls wait.
      unsafe_local: run programs where the machine has nothing to keep them in.
    """

    def __init__(
        self,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        *,
        workers: int = 1,
        unsafe_local: bool = False,
        _without: frozenset[str] | set[str] = frozenset(),
    ):
        if workers < 1:
            raise ValueError(f"Sandbox: workers must be at least 1, got {workers}")
        self.limits = limits
        self._unsafe = unsafe_local
        self._without = sorted(_without)
        self._workers = workers
        self._closed = False
        self._begin()
        _SANDBOXES.add(self)

    def run(
        self,
        source: str,
        stdin: str = "",
        argv: Sequence[str] = (),
        files: Mapping[str, str] | None = None,
        limits: Limits | None = None,
    ) -> Outcome:
        """Runs a Python program as `python main.py argv...` would, in an empty folder.

        Args:
          source: of the program, which is `main.py` in its folder.
          stdin: text that it reads.
          argv: its arguments.
          files: further files of its folder, by name.
          limits: in place of the sandbox's own.
        Raises:
          ValueError: an argument that is not text, a name outside of the folder, or a package that
            is not installed.
          RuntimeError: this machine lacks a required layer, or the sandbox is closed.
        """
        task = written(source=source, stdin=stdin, argv=argv, files=files or {})
        return self._run(task, limits or self.limits)

    def run_command(
        self,
        command: Sequence[str],
        stdin: str = "",
        files: Mapping[str, str] | None = None,
        limits: Limits | None = None,
    ) -> Outcome:
        """Runs another program of the root; `Limits.read` adds to the root. See `run`.

        Args:
          command: a program and its arguments; a name without a slash is looked up in /usr/bin.
        """
        task = written(command=command, stdin=stdin, files=files or {})
        return self._run(task, limits or self.limits)

    @property
    def missing(self) -> dict[str, str]:
        """The layers that this machine does not have, and why."""
        with self._server() as server:
            return server.missing

    def close(self) -> None:
        """Ends the servers; a program that is running is ended when its call comes back."""
        self._closed = True
        _stop(self._idle)

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _begin(self) -> None:
        """Starts without servers, at first and in the child of a fork."""
        self._slots = threading.BoundedSemaphore(self._workers)
        self._idle: list[Server] = []
        self._finalizer = weakref.finalize(self, _stop, self._idle)

    @contextlib.contextmanager
    def _server(self):
        """A server for as long as it is used, a running one if there is one."""
        with self._slots:
            if self._closed:
                raise RuntimeError("Sandbox: the sandbox must be open, got a call after close()")
            try:
                server = self._idle.pop()
            except IndexError:
                server = Server(self._without)
            try:
                if not (self._unsafe or _allowed.is_set() or holds(server.layers or ())):
                    lacking = ", ".join(f"{a} ({why})" for a, why in server.missing.items())
                    raise RuntimeError(
                        "Sandbox: this machine keeps no program from files, network or other"
                        f" processes, as it lacks {lacking}; untrusted programs are run"
                        " here only with unsafe_local=True (--unsafe-local)"
                    )
                yield server
            finally:
                if server.lost or self._closed:
                    server.stop()
                else:
                    self._idle.append(server)

    def _run(self, task: tuple[bytes, bytes], limits: Limits) -> Outcome:
        request = _request(limits)
        for attempt in range(2):
            with self._server() as server:
                outcome = server.run(request, task, limits)
            if outcome.reason != "lost" or attempt:
                return outcome
        raise AssertionError("unreachable")


@functools.cache
def shared(limits: Limits = Limits(), most: int = 2**10) -> Sandbox:  # noqa: B008 - frozen
    """The sandbox of this process for equal limits, with at most so many workers, one a
    processor."""
    return Sandbox(limits, workers=min(most, os.cpu_count() or 1))


def _request(limits: Limits) -> dict[str, Any]:
    """The request to a server: limits, and files that the program may read beyond the
    interpreter."""
    read, search = list(limits.read), []
    for name in limits.packages:
        found = interpreter.find_package(name, sys.path)
        if not found:
            raise ValueError(f"Limits: packages must be installed here, got {name!r}")
        read += found
        search.append(str(Path(found[0]).parent))
    fields = asdict(limits)
    del fields["packages"], fields["read"]
    return {"limits": fields, "read": read, "search": list(dict.fromkeys(search))}


def _begin_again() -> None:
    for sandbox in list(_SANDBOXES):
        sandbox._begin()


_SANDBOXES: weakref.WeakSet[Sandbox] = weakref.WeakSet()
os.register_at_fork(after_in_child=_begin_again)


def _stop(servers: list[Server]) -> None:
    while servers:
        servers.pop().stop()
