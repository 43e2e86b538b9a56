"""The server: a fresh interpreter that forks one program at a time into the sandbox and watches it.

It has one thread, and one channel to the caller. When the channel closes, it ends the program and
itself. It never reads the task of a program, but passes the handles on. With `jobs.serve` instead
of `programs`, the forked process calls a function of the caller with values.
"""

import contextlib
import gc
import json
import os
import select
import signal
import socket
import stat
import struct
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from rlvr_jax.sandbox import folder, inside, linux, watch
from rlvr_jax.sandbox.layers import NAMESPACES, Layers, Refused

KILL = b"k"  # sent by the caller for a program that writes too much
_REQUEST = 2**20  # bytes
_TICK, _SLOW_TICK = 0.005, 0.02  # seconds between two checks of a program
_MB = 2**20


class Gone(Exception):
    """The caller has closed the channel."""


def main(serve: Callable[["Runner"], None], trusted: bool) -> None:
    """Serves the channel at standard input. Does not return.

    Args:
      serve: `programs`, or `jobs.serve`.
      trusted: as in `Layers`.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    channel = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    os.close(null)
    layers, caller = None, os.getppid()
    try:
        layers = Layers(set(json.loads(sys.argv[-1])), trusted)
        serve(Runner(channel, layers))
    except Gone:
        pass
    except Exception as error:
        with contextlib.suppress(OSError):  # the caller may also be gone
            send(channel, {"error": f"{type(error).__name__}: {error}"[:900]})
    finally:
        if layers and layers.work:
            folder.remove(layers.work)
        if layers and layers.group and os.getppid() != caller:
            layers.group.leave()  # the caller, who would remove it, is gone
    os._exit(0)


def programs(runner: "Runner") -> None:
    """Runs the programs that the caller sends."""
    runner.layers.try_out(runner.run)
    send(runner.channel, runner.layers.first_message())
    gc.collect()
    gc.freeze()  # otherwise a collection in the program would copy all our pages
    gc.disable()
    while True:
        request, handles = receive(runner.channel)
        try:
            reply = runner.run(request, handles)
        except Refused as refused:
            reason = "disk" if refused.layer == "disk" else "lost"
            reply = {"status": None, "reason": reason, "seconds": 0.0, "why": str(refused)}
        send(runner.channel, reply)


def send(channel: socket.socket, message: dict[str, Any]) -> None:
    """Writes a message as a line of JSON; raises OSError if the caller is gone."""
    channel.sendall(json.dumps(message).encode() + b"\n")


def receive(channel: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Waits for a request and the four handles that come with it."""
    text, handles = b"", []
    while not text.endswith(b"\n"):
        try:
            chunk, more, _, _ = socket.recv_fds(channel, _REQUEST, 4)
        except OSError:
            raise Gone from None
        if not chunk:
            raise Gone
        text += chunk
        handles += more
    # A kill message may arrive after the previous program's end.
    return json.loads(text.lstrip(KILL)), handles


class Runner:
    """Runs one program after the other."""

    def __init__(self, channel: socket.socket, layers: Layers):
        self.channel = channel
        self.layers = layers

    def run(
        self,
        request: dict[str, Any],
        handles: list[int],
        serve: Callable[[int], NoReturn] | None = None,
    ) -> dict[str, Any]:
        """Runs a program to its end.

        Args:
          request: `limits`, fields of `Limits`; `read`, further paths; `search`, folders of
            packages.
          handles: the task, standard input, output and error; they are closed.
          serve: as in `Plan`.
        Returns:
          `status` of the wait, None without one; `reason`; `seconds`.
        Raises:
          Refused: a layer could not be put on.
          Gone: the caller has ended.
        """
        limits = request["limits"]
        if self.layers.group:
            self.layers.group.limit(limits["memory_mb"])
        plan = replace(self.layers.plan(request), serve=serve)
        start = time.monotonic()
        ended = True
        try:
            pid, report = self.start(plan, handles)
            try:
                message, reason = self.wait(pid, report, limits, start)
            finally:
                ended = watch.end(pid, tree="tree" in self.layers.on)
                os.close(report)
        finally:
            if plan.work:
                folder.remove(plan.work)
        if not ended:
            raise Gone  # the caller starts another server, and this process ends
        seconds = time.monotonic() - start
        if message.startswith(inside.FAILED):
            layer, _, why = message[1:].decode(errors="replace").partition(": ")
            raise Refused(layer, why)
        status = None
        if message.startswith(inside.ENDED):
            status = os.waitstatus_to_exitcode(struct.unpack("i", message[1:])[0])
        ended_by = "lost" if status is None else "cpu" if status == -signal.SIGXCPU else ""
        return {"reason": reason or ended_by, "status": status, "seconds": seconds}

    def start(self, plan: inside.Plan, handles: list[int]) -> tuple[int, int]:
        """Forks the first process; returns its number, and the pipe for its report."""
        gate, opens = os.pipe()
        report, reports = os.pipe()
        if not os.geteuid():
            for handle in handles[2:]:
                if stat.S_ISFIFO(os.fstat(handle).st_mode):  # and not the machine's /dev/null
                    os.chown(handle, self.layers.user, -1)  # to be opened again as /dev/stdout
        flags = sum(NAMESPACES[layer] for layer in plan.layers if layer in NAMESPACES)
        try:
            pid = linux.clone(flags | signal.SIGCHLD) if flags else os.fork()
        except OSError as error:
            for handle in (gate, opens, report, reports, *handles):
                os.close(handle)
            raise Refused("user" if "user" in plan.layers else "pid", str(error)) from None
        if not pid:
            os.close(opens)
            os.close(report)
            inside.first(plan, gate, reports, handles)
        try:
            for handle in (gate, reports, *handles):
                os.close(handle)
            if "user" in plan.layers:
                self.name_user(pid)
            if linux.on_linux():  # if memory runs out, it is killed before us and the caller
                Path(f"/proc/{pid}/oom_score_adj").write_text("1000")
            os.write(opens, b"x")
        except OSError as error:
            watch.end(pid)
            os.close(report)
            raise Refused("uid" if "uid" in plan.layers else "user", str(error)) from None
        finally:
            os.close(opens)
        return pid, report

    def name_user(self, pid: int) -> None:
        """Sets the outside user of a new namespace."""
        group = self.layers.user
        if os.geteuid():
            Path(f"/proc/{pid}/setgroups").write_text("deny")
            group = os.getegid()
        for kind, number in (("uid", self.layers.user), ("gid", group)):
            Path(f"/proc/{pid}/{kind}_map").write_text(f"{inside.INSIDE_USER} {number} 1")

    def wait(
        self, pid: int, report: int, limits: dict[str, Any], start: float
    ) -> tuple[bytes, str]:
        """The report of the first process, or nothing and the exceeded limit."""
        deadline = start + limits["wall_seconds"]
        tick = _SLOW_TICK if self.layers.group else _TICK
        killed = self.layers.group.killed() if self.layers.group else 0
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return b"", "wall"
            ready, _, _ = select.select([report, self.channel], [], [], min(left, tick))
            if self.layers.group and self.layers.group.killed() > killed:
                return b"", "memory"
            if self.channel in ready:
                if self.channel.recv(1) != KILL:
                    raise Gone
                return b"", "output"
            if report in ready:
                message = os.read(report, 4096)
                if message.startswith(inside.ENDED) and self.full(limits):
                    return b"", "disk"  # it wrote faster than it was checked
                return message, ""
            if reason := self.passed(limits):
                return b"", reason

    def passed(self, limits: dict[str, Any]) -> str:
        """The limit that the process tree of the program has exceeded, or ""."""
        if "watch" not in self.layers.on:
            return ""
        me = os.getpid()
        used = watch.usage(me)
        if used.tasks > limits["processes"] + 1:
            return "processes"
        if used.cpu > limits["cpu_seconds"]:
            return "cpu"
        most = limits["memory_mb"] * _MB
        if used.memory > most and watch.proportional_memory(me) > most:
            return "memory"
        return "disk" if self.full(limits) else ""

    def full(self, limits: dict[str, Any]) -> bool:
        """Whether a work folder on disk is larger than its limit."""
        return bool(self.layers.work and folder.size(self.layers.work) > limits["disk_mb"] * _MB)
