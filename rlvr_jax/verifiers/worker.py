"""The code of the supervisor of a pool and of its workers (see `pool`).

Run as a script by a fresh interpreter, with the channel to the caller as its standard input; the
caller's side imports only the messages and the helpers that end processes. This file therefore
needs nothing but the standard library.

The supervisor never runs a job, so it stays able to act. It is the subreaper of its descendants:
an orphan becomes its child, so that one which left its group by setsid is found as well. A worker
that failed, or left a process or a thread, is replaced before the next job.
"""

import contextlib
import ctypes
import importlib
import json
import os
import resource
import select
import signal
import socket
import sys
import time
from pathlib import Path

GRACE = 5.0  # seconds a supervisor may be late before it is taken for lost
VALUE, ERROR, TIMEOUT, KILLED = b"V", b"E", b"T", b"K"  # the first byte of a reply
_TICK = 0.02  # seconds between two looks at the tree of a running job


class Channel:
    """Messages with a length of 4 bytes in front, over a stream socket."""

    def __init__(self, stream: socket.socket, limit: int):
        self.socket = stream
        self.limit = limit
        self.buffer: bytearray = bytearray()

    def send(self, message: bytes) -> None:
        self.socket.sendall(len(message).to_bytes(4, "big") + message)

    def poll(self) -> bytes | None:
        """Reads once; returns a message if one is complete. EOFError: end, or one too long."""
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


class _Keeper:
    """The supervisor's side: forks workers, hands them jobs, kills their trees."""

    def __init__(self, channel: Channel, call, settings: dict, isolation: set[str]):
        self.channel = channel
        self.call = call
        self.settings = settings
        self.isolation = isolation
        self.caller = os.getppid()
        self.worker: Channel | None = None
        self.pid = 0
        self.jobs = 0
        self.seconds = 0.0

    def serve(self) -> None:
        """Answers jobs until the caller is gone."""
        try:
            while True:
                if self.worker is None:
                    self.fork()
                while not select.select([self.channel.socket], [], [], 1.0)[0]:
                    self.check_caller()
                job = self.channel.receive()
                seasoned = self.jobs > 0
                reply = self.attempt(job)
                if reply[:1] == KILLED or (seasoned and reply[:1] == ERROR):
                    reply = self.attempt(job)
                self.channel.send(reply)
        except (OSError, EOFError):
            pass  # the caller closed the channel or died
        finally:
            self.kill()

    def attempt(self, job: bytes) -> bytes:
        """Runs a job; on any failure no worker is left."""
        if self.worker is None:
            self.fork()
        start = time.monotonic()
        try:
            self.worker.send(job)
            while True:
                left = start + self.settings["wall_seconds"] - time.monotonic()
                if left <= 0:
                    self.kill()
                    return TIMEOUT + b"wall limit"
                streams = [self.worker.socket, self.channel.socket]
                ready, _, _ = select.select(streams, [], [], min(left, _TICK))
                if self.channel.socket in ready:
                    raise EOFError  # the caller sends nothing while a job runs
                if self.worker.socket in ready:
                    try:
                        reply = self.worker.poll()
                    except EOFError:
                        return self.died(time.monotonic() - start)
                    if reply is not None:
                        break
                elif self.crowd() > self.settings["processes"]:
                    self.kill()
                    return ERROR + f"more than {self.settings['processes']} processes".encode()
                self.check_caller()
        except (BrokenPipeError, ConnectionResetError):
            return self.died(time.monotonic() - start)
        self.jobs += 1
        self.seconds += time.monotonic() - start
        worn = self.jobs >= self.settings["jobs_per_worker"]
        worn |= self.seconds >= self.settings["cpu_seconds"]
        worn |= reply[:1] == ERROR  # it may have left little memory
        worn |= bool(self.worker.buffer or select.select([self.worker.socket], [], [], 0)[0])
        if worn or self.crowd():
            self.kill()
        return reply

    def crowd(self) -> int:
        """Counts processes and threads that the job has started; 1 where it cannot be known."""
        if "descendants" not in self.isolation:
            return 1 if self.settings["jobs_per_worker"] > 1 else 0
        tree = descendants(os.getpid(), self.settings["processes"] + 8)
        threads = sum(len(_threads(pid)) for pid in tree)
        return threads - (2 if "processes" in self.isolation else 1)

    def check_caller(self) -> None:
        if os.getppid() != self.caller:
            raise EOFError  # it died, but a child of it holds its end of the channel open

    def died(self, seconds: float) -> bytes:
        """Reaps a worker that closed its channel in a job of so many seconds; gives the reply."""
        code = None
        for _ in range(50):
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.pid = 0
                code = os.waitstatus_to_exitcode(status)
                code = 128 - code if code < 0 else code
                break
            time.sleep(0.002)
        self.kill()
        if code == 128 + signal.SIGKILL and seconds >= self.settings["cpu_seconds"]:
            return TIMEOUT + b"CPU limit"
        if code == 128 + signal.SIGKILL:
            return KILLED + b"worker was killed"
        if code is None:
            return ERROR + b"worker closed its channel"
        ended = f"died by signal {code - 128}" if code > 128 else f"exited with status {code}"
        return ERROR + f"worker {ended}".encode()

    def fork(self) -> None:
        ours, theirs = socket.socketpair()
        self.pid = os.fork()
        if not self.pid:
            try:
                ours.close()
                self.channel.socket.close()
                _work(theirs, self.call, self.settings, self.isolation)
            finally:
                os._exit(1)
        theirs.close()
        ours.settimeout(self.settings["wall_seconds"])
        self.worker = Channel(ours, self.settings["reply_bytes"] + 1)
        self.jobs, self.seconds = 0, 0.0

    def kill(self) -> None:
        """Kills and reaps every descendant; orphans of the dead are ours, hence the loop."""
        if self.worker is not None:
            self.worker.socket.close()
            self.worker = None
        deadline = time.monotonic() + GRACE / 2
        pause = 0.0005
        while time.monotonic() < deadline:
            for pid in {self.pid, *descendants(os.getpid())} - {0}:
                kill(pid)
            try:
                while reaped := os.waitpid(-1, os.WNOHANG)[0]:
                    self.pid = self.pid if reaped != self.pid else 0
            except ChildProcessError:
                return
            time.sleep(pause)
            pause = min(2 * pause, 0.02)
        os._exit(1)  # something cannot be killed: the caller starts afresh


def _work(stream: socket.socket, call, settings: dict, isolation: set[str]) -> None:
    """A worker's life: gives up rights, then answers jobs until the channel closes."""
    os.setsid()
    _prctl(_PDEATHSIG, signal.SIGKILL)
    if "processes" in isolation and _system("unshare", _NEWPID):
        inner = os.fork()
        if inner:
            stream.close()
            code = os.waitstatus_to_exitcode(os.waitpid(inner, 0)[1])
            os._exit(128 - code if code < 0 else code)
        os.setsid()
        _prctl(_PDEATHSIG, signal.SIGKILL)
    _prctl(_NO_NEW_PRIVILEGES, 1)
    _limit(settings, "network" in isolation)
    channel = Channel(stream, settings["job_bytes"])
    while True:
        try:
            job = channel.receive()
        except (OSError, EOFError):
            os._exit(0)
        try:
            reply = VALUE + json.dumps(call(json.loads(job))).encode()
            if len(reply) > settings["reply_bytes"]:
                reply = ERROR + f"reply of {len(reply)} bytes".encode()
        except BaseException as error:  # SystemExit and time-outs of libraries included
            reply = ERROR + f"{type(error).__name__}: {str(error)[:200]}".encode(errors="replace")
        channel.send(reply)


def _limit(settings: dict, own_users: bool) -> None:
    cpu = int(2 * settings["cpu_seconds"]) + 1
    megabyte = 2**20
    limits = {
        resource.RLIMIT_CPU: cpu,
        resource.RLIMIT_AS: settings["memory_mb"] * megabyte,
        resource.RLIMIT_FSIZE: settings["file_mb"] * megabyte,
        resource.RLIMIT_NOFILE: settings["open_files"],
        resource.RLIMIT_CORE: 0,
    }
    # Counted per user; only in a user namespace of our own are the others not in the count.
    if own_users or not settings["processes"]:
        limits[resource.RLIMIT_NPROC] = settings["processes"] and settings["processes"] + 3
    for kind, value in limits.items():
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        with contextlib.suppress(ValueError, OSError):  # macOS refuses RLIMIT_AS
            resource.setrlimit(kind, (value, value))


_NEWUSER, _NEWIPC, _NEWNET, _NEWPID = 0x10000000, 0x08000000, 0x40000000, 0x20000000
_PDEATHSIG, _SUBREAPER, _NO_NEW_PRIVILEGES = 1, 36, 38  # of linux/prctl.h


def _system(name: str, *arguments: int) -> bool:
    """Calls a function of libc by name; False if it is missing or refused."""
    function = getattr(ctypes.CDLL(None), name, None)
    return function is not None and function(*arguments) == 0


def _prctl(option: int, value: int) -> bool:
    return sys.platform == "linux" and _system("prctl", option, value, 0, 0, 0)


def _isolate() -> set[str]:
    """Takes the supervisor out of the network and into a user namespace, where that is allowed."""
    listed = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").exists()
    granted = {"descendants"} if listed and _prctl(_SUBREAPER, 1) else set()
    user, group = os.getuid(), os.getgid()
    if sys.platform == "linux" and _system("unshare", _NEWUSER | _NEWNET | _NEWIPC):
        granted |= {"network", "processes"}
        with contextlib.suppress(OSError):  # without a map the user id is unknown: fine
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
            Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    return granted


def _threads(pid: int) -> list[str]:
    try:
        return [thread.name for thread in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return []


def descendants(root: int, limit: int = 100_000) -> list[int]:
    """Lists children, their children and so on, at most `limit` and some."""
    found, todo = [], [root]
    while todo and len(found) < limit:
        pid = todo.pop()
        for thread in _threads(pid):
            with contextlib.suppress(OSError):
                text = Path(f"/proc/{pid}/task/{thread}/children").read_text()
                children = [int(child) for child in text.split()]
                found += children
                todo += children
    return found


def kill(pid: int) -> None:
    """Ends a process and the group that it leads, if they are there and ours."""
    for end in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            end(pid, signal.SIGKILL)


def _main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    channel = Channel(socket.socket(fileno=os.dup(0)), limit=2**24)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    os.close(null)
    settings = json.loads(channel.receive())
    channel.limit = settings["job_bytes"]
    isolation = _isolate()
    try:
        sys.path[:] = settings["path"]
        module, _, name = settings["function"].partition(":")
        call = getattr(importlib.import_module(module), name)
        if settings["warm_up"] is not None:
            call(settings["warm_up"])
    except Exception as error:
        channel.send(json.dumps({"error": f"{type(error).__name__}: {error}"[:900]}).encode())
        return
    channel.send(json.dumps({"isolation": sorted(isolation)}).encode())
    _Keeper(channel, call, settings, isolation).serve()


if __name__ == "__main__":
    _main()
