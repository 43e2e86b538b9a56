"""The caller's side: programs in, outcomes out, servers in between."""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rlvr_jax.sandbox import cgroup, folder, interpreter
from rlvr_jax.sandbox.layers import holds
from rlvr_jax.sandbox.limits import Limits, Outcome
from rlvr_jax.sandbox.server import KILL
from rlvr_jax.sandbox.task import sealed, written

__all__ = ["Sandbox", "run", "run_command"]

_GRACE = 10.0  # seconds a server may be late before it is taken for lost
_START = 60.0  # seconds for the start of a server
_CHUNK = 65536  # bytes read from a program at a time
_BOOT = (
    "import sys; sys.path.append(sys.argv[1]);"
    " from rlvr_jax.sandbox import server; sys.path.pop(); server.main()"
)
# One thread in a numerical library: each reserves address space of its own.
_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "2",
}
_PASSED_ON = ("LD_LIBRARY_PATH",)  # an interpreter may need it to start


class Sandbox:
    """Runs programs that nobody trusts, each forked from an interpreter that is already there.

    A context manager; all methods may be called from any thread. Servers start when they are
    needed, and one that was lost is replaced.

    Args:
      limits: of a program that has no others.
      workers: programs at a time; further calls wait.
      unsafe_local: run programs where the machine has nothing to keep them in.
    Raises:
      ValueError: fewer than one worker; a limit out of range.
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
        self._slots = threading.BoundedSemaphore(workers)
        self._closed = False
        self._idle: list[_Server] = []
        self._finalizer = weakref.finalize(self, _stop, self._idle)

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
          stdin: what it reads.
          argv: its arguments.
          files: further files of its folder, by name.
          limits: in place of the sandbox's own.
        Raises:
          ValueError: an argument that is no text, a name outside of the folder, or a package that
            is not installed.
          RuntimeError: nothing here keeps a program in, or the sandbox is closed.
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
        """Runs another program that the root holds; `Limits.read` adds to what it holds.

        Args:
          command: a program and its arguments; a name without a slash is looked up in /usr/bin.
          stdin, files, limits: as in `run`.
        Raises:
          ValueError, RuntimeError: as in `run`.
        """
        task = written(command=command, stdin=stdin, files=files or {})
        return self._run(task, limits or self.limits)

    @property
    def layers(self) -> frozenset[str]:
        """The layers that a program is behind on this machine."""
        with self._server() as server:
            return server.layers

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

    def __exit__(self, *exception) -> None:
        self.close()

    @contextlib.contextmanager
    def _server(self):
        """A server for as long as it is used, a running one if there is one."""
        with self._slots:
            if self._closed:
                raise RuntimeError("Sandbox: the sandbox must be open, got a call after close()")
            try:
                server = self._idle.pop()
            except IndexError:
                server = None
            if server is None or server.owner != os.getpid():  # a fork has its own
                server = _Server(self._without)
            try:
                if not (self._unsafe or holds(server.layers)):
                    raise RuntimeError(
                        "Sandbox: this machine keeps no program from files, network or other"
                        f" processes (it lacks {', '.join(sorted(server.missing))}); programs that"
                        " nobody trusts are run here only with unsafe_local=True"
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


def run(
    source: str,
    stdin: str = "",
    argv: Sequence[str] = (),
    files: Mapping[str, str] | None = None,
    limits: Limits = Limits(),  # noqa: B008 - frozen
    *,
    unsafe_local: bool = False,
) -> Outcome:
    """Runs one Python program in a sandbox of its own; for many, see `Sandbox`."""
    with Sandbox(limits, unsafe_local=unsafe_local) as sandbox:
        return sandbox.run(source, stdin, argv, files)


def run_command(
    command: Sequence[str],
    stdin: str = "",
    files: Mapping[str, str] | None = None,
    limits: Limits = Limits(),  # noqa: B008 - frozen
    *,
    unsafe_local: bool = False,
) -> Outcome:
    """Runs one program that is not Python in a sandbox of its own."""
    with Sandbox(limits, unsafe_local=unsafe_local) as sandbox:
        return sandbox.run_command(command, stdin, files)


def _request(limits: Limits) -> dict[str, Any]:
    """What a server is asked: the limits, and what the program may read beyond the interpreter."""
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


def _stop(servers: list[_Server]) -> None:
    while servers:
        servers.pop().stop()


class _Server:
    """The handle on one server process."""

    def __init__(self, without: Sequence[str]):
        ours, theirs = socket.socketpair()
        self.owner = os.getpid()
        self.channel = ours
        self.lost = False
        self.group = self.work = ""
        program = interpreter.resolved()
        place = str(Path(__file__).resolve().parents[2])
        environment = {key: os.environ[key] for key in _PASSED_ON if key in os.environ}
        with theirs:
            self.process = subprocess.Popen(
                [program, "-S", "-s", "-P", "-c", _BOOT, place, json.dumps(list(without))],
                stdin=theirs,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env=_ENVIRONMENT | environment,
                start_new_session=True,
            )
        try:
            ours.settimeout(_START)
            hello = _line(ours)
            if hello is None or "error" in hello:
                why = hello["error"] if hello else "it ended"
                raise RuntimeError(f"Sandbox: the interpreter {program} must start, got: {why}")
        except BaseException:
            self.stop()
            raise
        self.layers = frozenset(hello["layers"])
        self.missing: dict[str, str] = hello["missing"]
        self.group, self.work = hello["group"], hello["work"]

    def run(self, request: dict[str, Any], task: tuple[bytes, bytes], limits: Limits) -> Outcome:
        """Runs a program; the server is lost if it does not answer."""
        what, stdin = map(sealed, task)
        out, writes_out = os.pipe()
        error, writes_error = os.pipe()
        outputs = {out: bytearray(), error: bytearray()}
        start = time.monotonic()
        try:
            handles = [what, stdin, writes_out, writes_error]
            try:
                text = json.dumps(request).encode() + b"\n"
                socket.send_fds(self.channel, [text], handles)
            finally:
                for handle in handles:
                    os.close(handle)
            reply = self._follow(outputs, limits)
        except OSError:
            reply = None
        except BaseException:
            self.lost = True
            raise
        finally:
            os.close(out)
            os.close(error)
        if reply is None:
            self.lost = True
            reply = {"status": None, "reason": "lost", "why": "the server was lost"}
        stdout, stderr = (bytes(text[: limits.output_bytes]) for text in outputs.values())
        status = reply["status"]
        too_much = any(len(text) > limits.output_bytes for text in outputs.values())
        reason = reply["reason"] or ("output" if too_much else "")
        return Outcome(
            status=None if reason or status is None else status if status >= 0 else 128 - status,
            stdout=stdout.decode("utf-8", "replace"),
            stderr=reply.get("why", stderr.decode("utf-8", "replace")),
            seconds=reply.get("seconds", time.monotonic() - start),
            reason=reason,
        )

    def _follow(self, outputs: dict[int, bytearray], limits: Limits) -> dict[str, Any] | None:
        """Reads what a program writes until the server says how it ended; None: it was lost."""
        deadline = time.monotonic() + limits.wall_seconds + _GRACE
        waiting = select.poll()
        for handle in (*outputs, self.channel.fileno()):
            waiting.register(handle, select.POLLIN)
        told = False
        while True:
            ready = waiting.poll(max(deadline - time.monotonic(), 0) * 1000)
            if not ready:
                return None
            for handle, _ in ready:
                if handle in outputs and not _more(handle, outputs[handle], limits.output_bytes):
                    waiting.unregister(handle)
                    if len(outputs[handle]) > limits.output_bytes and not told:
                        self.channel.sendall(KILL)
                        told = True
            if any(handle == self.channel.fileno() for handle, _ in ready):
                reply = _line(self.channel)
                for handle, text in outputs.items():  # what is left in the pipes
                    os.set_blocking(handle, False)
                    with contextlib.suppress(BlockingIOError):
                        while _more(handle, text, limits.output_bytes):
                            pass
                return reply

    def stop(self) -> None:
        """Ends the server, which ends its program; if it does not, the kernel does."""
        if self.owner != os.getpid():
            return  # a fork of the caller does not end what is not its own
        with contextlib.suppress(OSError):
            self.channel.shutdown(socket.SHUT_RDWR)
        try:
            self.process.wait(timeout=0.0 if self.lost else _GRACE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.channel.close()
        if self.group:
            cgroup.remove(self.group)
        with contextlib.suppress(OSError):  # it is gone unless the server was killed
            if self.work:
                folder.remove(self.work)


def _more(handle: int, text: bytearray, limit: int) -> bool:
    """Reads once; whether there may be more that is wanted."""
    chunk = os.read(handle, _CHUNK)
    text += chunk
    return bool(chunk) and len(text) <= limit


def _line(channel: socket.socket) -> dict[str, Any] | None:
    """A message of the server; None if it is gone or late."""
    text = b""
    while not text.endswith(b"\n"):
        try:
            chunk = channel.recv(_CHUNK)
        except OSError:
            return None
        if not chunk:
            return None
        text += chunk
    return json.loads(text)
