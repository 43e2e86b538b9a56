"""The server's side of jobs: calls a function, imported once, with untrusted values.

The function is the caller's and reads the caller's files; the values are hostile. Its *worker* is
forked like a program (`server.Runner.start`), with the layers that do not hide files, and does one
job after the other. The server never runs a job, so it can always act. A worker that failed, or
left a process or a thread, is replaced before the next job. `connection.JobServer` is the caller's
side.
"""

import contextlib
import functools
import gc
import importlib
import json
import os
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NoReturn

from rlvr_jax.sandbox import inside, watch
from rlvr_jax.sandbox.layers import Refused
from rlvr_jax.sandbox.server import Gone, Runner, send

GRACE = 5.0  # seconds that a server may be late before it counts as lost
VALUE, ERROR, TIMEOUT, KILLED = b"V", b"E", b"T", b"K"  # the first byte of a reply
_TICK = 0.02  # seconds between two checks of the processes of a running job
_LARGEST = 2**24  # bytes of the settings
_OWN = 2  # processes of a worker: the first one of its namespace, and itself


class Channel:
    """Messages with a length of 4 bytes in front, over a stream socket."""

    def __init__(self, stream: socket.socket, limit: int):
        self.socket = stream
        self.limit = limit
        self.buffer: bytearray = bytearray()

    def send(self, message: bytes) -> None:
        self.socket.sendall(len(message).to_bytes(4, "big") + message)

    def poll(self) -> bytes | None:
        """Reads once; returns a complete message or None. EOFError: the end, or a long message."""
        chunk = self.socket.recv(65536)
        self.buffer += chunk
        size = int.from_bytes(self.buffer[:4], "big")
        if not chunk or size > self.limit:
            raise EOFError
        if len(self.buffer) < 4 or len(self.buffer) < 4 + size:
            return None
        message = bytes(self.buffer[4 : 4 + size])
        del self.buffer[: 4 + size]
        return message

    def receive(self) -> bytes:
        """Waits for a message."""
        while (message := self.poll()) is None:
            pass
        return message


def serve(runner: Runner) -> None:
    """Imports the function that the caller names, and does its jobs until the caller ends."""
    channel = Channel(runner.channel, _LARGEST)
    settings = json.loads(channel.receive())
    channel.limit = settings["job_bytes"]
    runner.layers.enter()
    runner.layers.try_out(functools.partial(runner.run, serve=lambda handle: os._exit(0)))
    sys.path[:] = settings["path"]
    module, _, name = settings["function"].partition(":")
    call = getattr(importlib.import_module(module), name)
    if settings["warm_up"] is not None:
        call(settings["warm_up"])
    send(runner.channel, runner.layers.first_message())
    gc.collect()
    gc.freeze()
    _Keeper(runner, channel, call, settings).serve()


class _Keeper:
    """Forks workers, sends them jobs, ends their processes."""

    def __init__(self, runner: Runner, channel: Channel, call: Callable, settings: dict[str, Any]):
        self.runner = runner
        self.channel = channel
        self.settings = settings
        self.limits = {
            **{name: settings[name] for name in ("memory_mb", "file_mb", "open_files")},
            "cpu_seconds": 2 * settings["cpu_seconds"],
            "processes": settings["processes"] + 1,
        }
        self.work = functools.partial(_work, call, settings)
        self.caller = os.getppid()
        self.worker: Channel | None = None
        self.pid = self.report = 0
        self.jobs = 0
        self.seconds = 0.0

    def serve(self) -> None:
        """Answers jobs; raises `Gone` when the caller ends."""
        try:
            while True:
                if self.worker is None:
                    self.start()
                while not select.select([self.channel.socket], [], [], 1.0)[0]:
                    self.check_caller()
                job = self.channel.receive()
                seasoned = self.jobs > 0
                reply = self.attempt(job)
                if reply[:1] == KILLED or (seasoned and reply[:1] == ERROR):
                    reply = self.attempt(job)
                self.channel.send(reply)
        except (OSError, EOFError):
            raise Gone from None
        finally:
            self.end()

    def attempt(self, job: bytes) -> bytes:
        """Runs a job; after a failure no worker is left."""
        worker = self.worker or self.start()
        start = time.monotonic()
        try:
            worker.send(job)
            reply = self.wait(worker, start)
        except (BrokenPipeError, ConnectionResetError):
            reply = None
        if reply is None:
            return self.died(time.monotonic() - start)
        self.jobs += 1
        self.seconds += time.monotonic() - start
        worn = self.jobs >= self.settings["jobs_per_worker"]
        worn |= self.seconds >= self.settings["cpu_seconds"]
        worn |= reply[:1] != VALUE  # it may have left little memory
        worn |= bool(worker.buffer or select.select([worker.socket], [], [], 0)[0])
        if worn or self.leaves():
            self.end()
        return reply

    def wait(self, worker: Channel, start: float) -> bytes | None:
        """The reply to a job, or the limit that it exceeded; None if the worker died."""
        while True:
            left = start + self.settings["wall_seconds"] - time.monotonic()
            if left <= 0:
                return TIMEOUT + b"wall limit"
            streams = [worker.socket, self.channel.socket]
            ready, _, _ = select.select(streams, [], [], min(left, _TICK))
            if self.channel.socket in ready:
                raise Gone  # the caller sends nothing while a job runs
            if worker.socket in ready:
                try:
                    reply = worker.poll()
                except EOFError:
                    return None
                if reply is not None:
                    return reply
            elif reason := self.runner.passed(self.limits):
                return (TIMEOUT if reason == "cpu" else ERROR) + f"{reason} limit".encode()
            self.check_caller()

    def leaves(self) -> bool:
        """Whether the job has left a process or a thread, or this cannot be known."""
        if "watch" not in self.runner.layers.on:
            return True
        return sum(watch.tasks(os.getpid()).values()) > _OWN

    def check_caller(self) -> None:
        if os.getppid() != self.caller:
            raise Gone  # it died, but its child holds its end of the channel open

    def died(self, seconds: float) -> bytes:
        """Ends a worker that closed its channel `seconds` after a job began; returns the reply."""
        ready, _, _ = select.select([self.report], [], [], 0.1)
        message = os.read(self.report, 4096) if ready else b""
        self.end()
        if message.startswith(inside.FAILED):
            return KILLED + message[1:]
        if not message.startswith(inside.ENDED):
            return (
                (KILLED + b"worker was killed") if ready else ERROR + b"worker closed its channel"
            )
        code = os.waitstatus_to_exitcode(struct.unpack("i", message[1:])[0])
        code = 128 - code if code < 0 else code
        late = code == 128 + signal.SIGKILL and seconds >= self.settings["cpu_seconds"]
        if late or code == 128 + signal.SIGXCPU:
            return TIMEOUT + b"cpu limit"
        if code == 128 + signal.SIGKILL:
            return KILLED + b"worker was killed"
        ended = f"died by signal {code - 128}" if code > 128 else f"exited with status {code}"
        return ERROR + f"worker {ended}".encode()

    def start(self) -> Channel:
        """Forks a worker; returns the channel to it."""
        ours, theirs = socket.socketpair()
        handles = [theirs.detach(), *(os.open(os.devnull, os.O_RDWR) for _ in range(3))]
        request = {"limits": self.limits, "read": [], "search": []}
        plan = replace(self.runner.layers.plan(request), serve=self.work)
        try:
            self.pid, self.report = self.runner.start(plan, handles)
        except Refused as refused:  # such as no more processes: the caller starts another server
            raise OSError(str(refused)) from None
        ours.settimeout(self.settings["wall_seconds"])
        self.jobs, self.seconds = 0, 0.0
        self.worker = Channel(ours, self.settings["reply_bytes"] + 1)
        return self.worker

    def end(self) -> None:
        """Ends the worker and all processes that it has started."""
        if self.worker is None:
            return
        self.worker.socket.close()
        self.worker = None
        os.close(self.report)
        if not watch.end(self.pid, tree="tree" in self.runner.layers.on):
            raise Gone  # a process cannot be killed: the caller starts another server


def _work(call: Callable, settings: dict[str, Any], handle: int) -> NoReturn:
    """The main loop of a worker: answers jobs until the channel closes. Does not return."""
    channel = Channel(socket.socket(fileno=handle), settings["job_bytes"])
    with contextlib.suppress(OSError, EOFError):
        while True:
            job = channel.receive()
            try:
                reply = VALUE + json.dumps(call(json.loads(job))).encode()
                if len(reply) > settings["reply_bytes"]:
                    reply = ERROR + f"reply of {len(reply)} bytes".encode()
            except BaseException as error:  # SystemExit and time-outs of libraries included
                text = f"{type(error).__name__}: {str(error)[:200]}"
                reply = ERROR + text.encode(errors="replace")
            channel.send(reply)
    os._exit(0)
