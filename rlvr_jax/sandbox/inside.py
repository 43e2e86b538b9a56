"""From the fork to the program: the process side that gives up its rights.

There are two processes. The *first* process of the namespace makes the root, changes its user,
starts the *program* and waits for it. When it ends, the kernel ends all remaining processes. The
program gives up the other rights before it reads its task. So nothing of one program is ever in the
memory from which the next one is forked.
"""

import contextlib
import json
import os
import select
import signal
import socket
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from rlvr_jax.sandbox import landlock, linux, rights, root, script, seccomp

INSIDE_USER = 1000
MAIN = "main.py"
ENDED, FAILED = b"E", b"F"  # the first byte of the first process's report


@dataclass(frozen=True)
class Plan:
    """The way to run a program.

    Fields:
      layers: layers that are put on.
      limits: fields of `Limits`.
      read: visible files and folders.
      hidden: folders below these that are shown empty.
      further: files and folders that are visible there and elsewhere.
      allowed: `read` without `hidden`, file by file, if nothing hides them.
      search: folders of packages.
      work: the work folder if there is no separate root.
      user: user of the program; None: our user.
      memory_bytes: largest address space of one process (bytes).
      processes: largest number of processes and threads of the user; None: not limited in this way.
      filter: filter of system calls.
      serve: (handle of the task) -> never returns; None: the task is a script or a command.
    """

    layers: frozenset[str]
    limits: dict[str, Any]
    read: list[str]
    hidden: list[str]
    further: list[str]
    allowed: list[str]
    search: list[str]
    work: str
    user: int | None
    memory_bytes: int
    processes: int | None
    filter: bytes
    serve: Callable[[int], NoReturn] | None = None


def first(plan: Plan, gate: int, report: int, handles: list[int]) -> NoReturn:
    """The first process. Does not return.

    Args:
      plan: layers, limits and folders of the program.
      gate: a pipe that has a byte when the user of the namespace is set.
      report: a pipe for the result.
      handles: the task, standard input, output and error.
    """
    layer = "user"
    try:
        os.setsid()
        if os.read(gate, 1) != b"x":
            os._exit(1)
        if "uts" in plan.layers:
            layer = "uts"
            socket.sethostname("sandbox")
        work = plan.work
        sources = {}
        if "root" in plan.layers:
            layer = "root"
            sources = root.sources([*plan.read, *plan.further])
        if "user" in plan.layers:
            layer = "uid"
            rights.become(INSIDE_USER)  # with all rights in the namespace
        if "root" in plan.layers:
            layer = "root"
            user = os.getuid() if plan.user is None else plan.user
            further = [path for path in plan.further if path in sources]
            root.enter(sources, plan.hidden, further, plan.limits["disk_mb"], user)
            work = root.WORK
        if work:
            os.chdir(work)
        if plan.user is not None and "user" not in plan.layers:
            layer = "uid"
            rights.become(plan.user)
        if linux.on_linux():
            linux.prctl(1, signal.SIGKILL)  # die with the server: PR_SET_PDEATHSIG
            linux.prctl(4, 0)  # others cannot inspect it: PR_SET_DUMPABLE
        if _unread(report):
            os._exit(1)  # the server had died before
        program = os.fork()
        if not program:
            os.close(gate)
            _program(plan, work, report, handles)
        while True:
            pid, status = os.waitpid(-1, 0)
            if pid == program:
                os.write(report, ENDED + struct.pack("i", status))
                os._exit(0)
    except BaseException as error:
        _fail(report, layer, error)


def _unread(report: int) -> bool:
    """Whether a pipe has no readers left."""
    waiting = select.poll()
    waiting.register(report, 0)
    return any(event & select.POLLERR for _, event in waiting.poll(0))


def _fail(report: int, layer: str, error: BaseException) -> NoReturn:
    text = f"{layer}: {type(error).__name__}: {error}"
    with contextlib.suppress(OSError):
        os.write(report, FAILED + text.encode(errors="replace")[:1000])
    os._exit(1)


def _program(plan: Plan, work: str, report: int, handles: list[int]) -> NoReturn:
    """Gives up the remaining rights and runs. Does not return."""
    layer = "start"
    try:
        if linux.on_linux():
            linux.prctl(1, signal.SIGKILL)  # with the first one
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number, handle in enumerate(handles[1:]):
            os.dup2(handle, number)
        task = handles[0]
        own = "root" in plan.layers  # all files in it were put there, and /proc is our own
        shown = [*plan.read, "/proc"] if own else plan.allowed
        steps = {  # in this order
            "rlimits": lambda: rights.limit(plan.limits, plan.memory_bytes, plan.processes),
            "capabilities": rights.drop_capabilities,
            "no_new_privs": lambda: linux.prctl(38, 1),
            "landlock": lambda: landlock.restrict(
                read=[*shown, *plan.further, "/dev/random", "/dev/urandom"],
                write=[work, "/dev/null", "/dev/full"],
                see=["/"] if own else [*plan.read, *plan.search],
            ),
            "": lambda: linux.on_linux() and linux.prctl(4, 1),  # to own its files in /proc
            "seccomp": lambda: seccomp.install(plan.filter),
            "handles": lambda: _close_all_but(task, report),
        }
        for layer, put_on in steps.items():
            if not layer or layer in plan.layers:
                put_on()
        if plan.serve:
            os.close(report)
            plan.serve(task)
        layer = "disk"
        with os.fdopen(task, "rb") as file:
            job = json.loads(file.read())
        for name, text in job["files"].items():
            path = Path(work, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode("utf-8"))
    except BaseException as error:
        _fail(report, layer, error)
    os.close(report)
    os.environ |= {"HOME": work, "TMPDIR": work}
    if job["command"]:
        _execute(job["command"])
    sys.path[:] = [work, *sys.path, *plan.search]
    sys.argv[:] = [MAIN, *job["argv"]]
    script.run(job["files"][MAIN], str(Path(work, MAIN)))


def _close_all_but(*handles: int) -> None:
    low = 3
    for handle in sorted(handles):
        os.closerange(low, handle)
        low = handle + 1
    os.closerange(low, os.sysconf("SC_OPEN_MAX"))


def _execute(command: list[str]) -> NoReturn:
    """Becomes another program. Does not return; without such a program the status is a shell's."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        os.execvpe(command[0], command, os.environ)
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)
