"""The caller's side: sends programs to servers and returns outcomes."""

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
    """Lets sandboxes of this process run programs even if the machine lacks required layers
    (`--unsafe-local` of a run)."""
    _allowed.set()


class Sandbox:
    """Runs untrusted programs, each forked from a running interpreter.

    It is a context manager; all methods may be called from any thread. Servers start when they are
    needed, and a lost server is replaced.

    Args:
      limits: default limits of a program.
      workers: number of simultaneous programs; further calls wait.
      unsafe_local: run programs even if the machine lacks required layers.
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
        """Runs a Python program like `python main.py argv...`, in an empty folder.

        Args:
          source: source of the program, which is `main.py` in its folder.
          stdin: text of its standard input.
          argv: its arguments.
          files: further files of its folder, by name.
          limits: replaces the sandbox's limits.
        Raises:
          ValueError: an argument is not text, a name is outside of the folder, or a package is not
            installed.
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
        """Runs another program of the root, to which `Limits.read` adds files. See `run`.

        Args:
          command: a program and its arguments; a name without a slash is looked up in /usr/bin.
        """
        task = written(command=command, stdin=stdin, files=files or {})
        return self._run(task, limits or self.limits)

    @property
    def missing(self) -> dict[str, str]:
        """The layers that this machine does not have, with reasons."""
        with self._server() as server:
            return server.missing

    def close(self) -> None:
        """Ends the servers; a running program is ended when its call returns."""
        self._closed = True
        _stop(self._idle)

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _begin(self) -> None:
        """Sets the initial state without servers: at first, and in the child of a fork."""
        self._slots = threading.BoundedSemaphore(self._workers)
        self._idle: list[Server] = []
        self._finalizer = weakref.finalize(self, _stop, self._idle)

    @contextlib.contextmanager
    def _server(self):
        """A server for the time of its use; a running one if there is one."""
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
                        "Sandbox: this machine must keep programs from files, network and other"
                        f" processes, got one without {lacking}. Untrusted programs"
                        " run here only with unsafe_local=True (--unsafe-local)"
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
    """The sandbox of this process for equal limits, with one worker per processor, at most
    `most`."""
    return Sandbox(limits, workers=min(most, os.cpu_count() or 1))


def _request(limits: Limits) -> dict[str, Any]:
    """The request to a server: limits, and the files that the program may read in addition to the
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
