"""The caller's handle on one server: start it, have it run a program, end it."""

import contextlib
import json
import os
import select
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlvr_jax.sandbox import cgroup, folder, interpreter
from rlvr_jax.sandbox.limits import Limits, Outcome
from rlvr_jax.sandbox.server import KILL
from rlvr_jax.sandbox.task import sealed

_GRACE = 30.0  # seconds a server may be late before it is taken for lost
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


class Server:
    """The handle on one server process."""

    def __init__(self, without: Sequence[str]):
        ours, theirs = socket.socketpair()
        self.owner: int = os.getpid()
        self.channel: socket.socket = ours
        self.lost: bool = False
        self.group: str = ""
        self.work: str = ""
        program = interpreter.resolved()
        place = str(Path(__file__).resolve().parents[2])
        environment = {key: os.environ[key] for key in _PASSED_ON if key in os.environ}
        with theirs:
            self.process: subprocess.Popen[bytes] = subprocess.Popen(
                [program, "-S", "-s", "-P", "-c", _BOOT, place, json.dumps(list(without))],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env=_ENVIRONMENT | environment,
                start_new_session=True,
            )
        try:
            ours.settimeout(_START)
            hello = _line(ours) or {"error": "it ended"}
            if why := hello.get("error"):
                raise RuntimeError(f"Sandbox: the interpreter {program} must start, got: {why}")
        except BaseException:
            self.stop()
            raise
        self.layers: frozenset[str] = frozenset(hello["layers"])
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
            reply: dict[str, Any] = self._follow(outputs, limits) or {"error": "it did not answer"}
        except OSError as failure:
            reply = {"error": str(failure)}
        except BaseException:
            self.lost = True
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
        """Reads the output of a program until the server reports its end; None: it was lost."""
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
                for handle, text in outputs.items():  # the rest in the pipes
                    os.set_blocking(handle, False)
                    with contextlib.suppress(BlockingIOError):
                        while _more(handle, text, limits.output_bytes):
                            pass
                return reply

    def stop(self) -> None:
        """Ends the server, which ends its program; if it does not, the kernel does."""
        if self.owner != os.getpid():
            return  # a fork of the caller does not end the caller's server
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
    """Reads once; whether there may be more to read."""
    chunk = os.read(handle, _CHUNK)
    text += chunk
    return bool(chunk) and len(text) <= limit


def _line(channel: socket.socket) -> dict[str, Any] | None:
    """A message of the server; None if it is gone, late or no longer itself."""
    try:
        with channel.makefile("rb") as lines:  # it sends one line for each request
            return json.loads(lines.readline())
    except (OSError, ValueError):
        return None
