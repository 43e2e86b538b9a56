"""The caller's handles on servers: they start one, let it run a program or a job, and end it."""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlvr_jax.sandbox import cgroup, folder, interpreter, watch
from rlvr_jax.sandbox.jobs import ERROR, GRACE, KILLED, TIMEOUT, VALUE, Channel
from rlvr_jax.sandbox.limits import Limits, Outcome
from rlvr_jax.sandbox.server import KILL
from rlvr_jax.sandbox.task import sealed

_GRACE = 30.0  # seconds that a server may be late before it counts as lost
_START, _IMPORTS = 60.0, 120.0  # seconds for the start of a server, without and with a function
_CHUNK = 65536  # bytes read from a program at a time
_PROGRAMS = (
    "import sys; sys.path.append(sys.argv[1]);"
    " from rlvr_jax.sandbox import server; sys.path.pop(); server.main(server.programs, False)"
)
_JOBS = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]);"
    " from rlvr_jax.sandbox import jobs, server; server.main(jobs.serve, True)"
)
# One thread per numerical library: each thread reserves address space.
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
_PASSED_ON_TO_JOBS = (*_PASSED_ON, "PATH", "LANG", "LC_ALL", "TMPDIR")
_REASONS = {VALUE: "", ERROR: "error", TIMEOUT: "time", KILLED: "lost"}
_PLACE = str(Path(__file__).resolve().parents[2])


class Connection:
    """The handle on a process that forks others: starts it, waits for it, ends it.

    Args:
      command: command of the process; its last argument is added.
      passed_on: names of environment variables that are passed on.
      cwd: its folder; None: ours.
      without: as in `Layers`.
    """

    patience = _GRACE

    def __init__(
        self, command: Sequence[str], passed_on: Sequence[str], cwd: str | None, without: list[str]
    ):
        ours, theirs = socket.socketpair()
        self.owner: int = os.getpid()
        self.channel: socket.socket = ours
        self.lost: bool = False
        self.layers: frozenset[str] | None = None
        self.missing: dict[str, str] = {}
        self.group: str = ""
        self.work: str = ""
        environment = {key: os.environ[key] for key in passed_on if key in os.environ}
        with theirs:
            self.process: subprocess.Popen[bytes] = subprocess.Popen(
                [*command, json.dumps(without)],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=cwd,
                env=_ENVIRONMENT | environment,
                start_new_session=True,
            )

    def hear(self, seconds: float) -> str:
        """Waits for the first message, which has the layers; returns its error, "" without one."""
        self.channel.settimeout(seconds)
        hello = _line(self.channel) or {"error": "it ended"}
        if "error" not in hello:
            self.layers, self.missing = frozenset(hello["layers"]), hello["missing"]
            self.group, self.work = hello["group"], hello["work"]
        return hello.get("error", "")

    def leave(self) -> None:
        """Closes the channel; the process then ends its children and itself."""
        if self.owner != os.getpid():
            return  # a fork of the caller must not end the caller's processes
        with contextlib.suppress(OSError):
            self.channel.shutdown(socket.SHUT_RDWR)
        if self.layers is None:  # still importing: it has started nothing and does not listen
            self.process.kill()

    def stop(self) -> None:
        """Ends the process; if it does not end its children, the kernel does."""
        if self.owner != os.getpid():
            return
        self.leave()
        try:
            self.process.wait(timeout=0.0 if self.lost else self.patience)
        except subprocess.TimeoutExpired:
            started = watch.descendants(self.process.pid)
            self.process.kill()
            for pid in started:  # if no namespace ends them
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            self.process.wait()
        self.channel.close()
        if self.group:
            cgroup.remove(self.group)
        with contextlib.suppress(OSError):  # it is gone unless the process was killed
            if self.work:
                folder.remove(self.work)


class JobServer(Connection):
    """The handle on a process that calls a function with values, job by job; see `jobs`.

    Args:
      settings: function, warm_up, job_bytes, reply_bytes, jobs_per_worker and limits, as in
        `rlvr_jax.verifiers.WorkerPool`.
    """

    patience = GRACE

    def __init__(self, settings: dict[str, Any]):
        path = [*(str(Path(entry).absolute()) for entry in sys.path), _PLACE]
        command = [sys.executable, "-P", "-c", _JOBS, json.dumps(path)]
        super().__init__(command, _PASSED_ON_TO_JOBS, None, [])
        self.jobs: Channel = Channel(self.channel, settings["reply_bytes"] + 1024)
        self.channel.settimeout(_IMPORTS)
        with contextlib.suppress(OSError):  # a lost process is noticed while waiting
            self.jobs.send(json.dumps({**settings, "path": path}).encode())

    def ready(self) -> frozenset[str]:
        """Waits for the imports; returns the layers of the workers.

        Raises:
          RuntimeError: the function cannot be imported, or the process died or hangs.
        """
        if self.layers is None and (why := self.hear(_IMPORTS)):
            raise RuntimeError(why)
        self.channel.settimeout(GRACE)
        return self.layers or frozenset()

    def reply(self) -> tuple[str, str] | None:
        """Reads once; None if the reply is not complete. A complete reply is the reason why the job
        has no value ("error", "time" or "lost"; "" if it has one), and its text.

        Raises:
          OSError, EOFError: the process died or was compromised.
        """
        message = self.jobs.poll()
        if message is None:
            return None
        return _REASONS.get(message[:1], "error"), message[1:].decode(errors="replace")

    def ended(self) -> bool:
        """Whether the process is gone after it was ready."""
        return self.layers is not None and self.process.poll() is not None


class Server(Connection):
    """The handle on one process that runs programs."""

    def __init__(self, without: Sequence[str]):
        program = interpreter.resolved()
        command = [program, "-S", "-s", "-P", "-c", _PROGRAMS, _PLACE]
        super().__init__(command, _PASSED_ON, "/", list(without))
        try:
            if why := self.hear(_START):
                raise RuntimeError(f"Sandbox: the interpreter {program} must start, got: {why}")
        except BaseException:
            self.stop()
            raise

    def run(self, request: dict[str, Any], task: tuple[bytes, bytes], limits: Limits) -> Outcome:
        """Runs a program; the server counts as lost if it does not answer."""
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
            reply: dict[str, Any] = self._follow(outputs, limits) or {"error": "it did not answer"}
        except OSError as failure:
            reply = {"error": str(failure)}
        except BaseException:
            self.lost: bool = True
            raise
        finally:
            os.close(out)
            os.close(error)
        if "error" in reply:
            self.lost = True
            why = f"the server was lost: {reply['error']}"
            reply = {"status": None, "reason": "lost", "why": why}
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
        """Reads the output of a program until the server reports its end; None if it was lost."""
        deadline = time.monotonic() + limits.wall_seconds + _GRACE
        waiting = select.poll()
        for handle in (*outputs, self.channel.fileno()):
            waiting.register(handle, select.POLLIN)
        killed = False
        while True:
            ready = waiting.poll(max(deadline - time.monotonic(), 0) * 1000)
            if not ready:
                return None
            for handle, _ in ready:
                if handle in outputs and not _more(handle, outputs[handle], limits.output_bytes):
                    waiting.unregister(handle)
                    if len(outputs[handle]) > limits.output_bytes and not killed:
                        self.channel.sendall(KILL)
                        killed = True
            if any(handle == self.channel.fileno() for handle, _ in ready):
                reply = _line(self.channel)
                for handle, text in outputs.items():  # the rest in the pipes
                    os.set_blocking(handle, False)
                    with contextlib.suppress(BlockingIOError):
                        while _more(handle, text, limits.output_bytes):
                            pass
                return reply


def _more(handle: int, text: bytearray, limit: int) -> bool:
    """Reads once; returns whether there may be more to read."""
    chunk = os.read(handle, _CHUNK)
    text += chunk
    return bool(chunk) and len(text) <= limit


def _line(channel: socket.socket) -> dict[str, Any] | None:
    """A message of the server; None if the server ended, is late or was compromised."""
    try:
        with channel.makefile("rb") as lines:  # it sends one line for each request
            return json.loads(lines.readline())
    except (OSError, ValueError):
        return None
