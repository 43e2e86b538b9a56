"""The processes of a run, seen from outside: their tree, their resources, and their end."""

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_MOST = 100_000  # largest number of inspected processes
_PATIENCE = 5.0  # seconds of waiting for a process that cannot be killed


@dataclass
class Usage:
    """The resources of a tree of processes.

    Fields:
      tasks: number of processes and threads.
      memory: bytes; pages that are shared with a parent count in full.
      cpu: seconds, including processes that have ended and were waited for.
    """

    tasks: int = 0
    memory: int = 0
    cpu: float = 0.0


def usage(root: int) -> Usage:
    """The resources of the descendants of a process, without the process."""
    found = Usage()
    for pid in descendants(root):
        with contextlib.suppress(OSError, ValueError, IndexError):
            # Bytes: the name of a process need not be text.
            fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
            found.tasks += int(fields[17])
            found.cpu += sum(map(int, fields[11:15])) / _TICKS
            resident, shared = Path(f"/proc/{_living(pid)}/statm").read_bytes().split()[1:3]
            found.memory += (int(resident) - int(shared)) * _PAGE
    return found


def proportional_memory(root: int) -> int:
    """Bytes of the descendants of a process; each shared page counts once; slow."""
    total = 0
    for pid in descendants(root):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{_living(pid)}/smaps_rollup").read_bytes().splitlines():
                if line.startswith(b"Pss:"):
                    total += int(line.split()[1]) * 1024
    return total


def _living(pid: int) -> int:
    """A thread of a process whose memory can be read; the first one may have ended."""
    if b") Z" not in Path(f"/proc/{pid}/stat").read_bytes():
        return pid
    threads = (int(path.name) for path in Path(f"/proc/{pid}/task").iterdir())
    return next((thread for thread in threads if thread != pid), pid)


def descendants(root: int) -> list[int]:
    """Children, their children and so on."""
    return list(tasks(root))


def tasks(root: int) -> dict[int, int]:
    """The number of threads of each descendant of a process."""
    found, todo = {}, [root]
    while todo and len(found) < _MOST:
        pid = todo.pop()
        threads: list[str] = []
        with contextlib.suppress(OSError):
            threads = [entry.path for entry in os.scandir(f"/proc/{pid}/task")]
        found[pid] = len(threads)
        for thread in threads:
            with contextlib.suppress(OSError):
                todo += map(int, Path(f"{thread}/children").read_bytes().split())
    del found[root]
    return found


def end(pid: int, tree: bool = True) -> bool:
    """Kills and reaps a child and (`tree`) all other descendants of this process; False if one
    cannot be killed.

    If the child was the first process of its namespace, the kernel has already ended the others. If
    not, orphans become children of this process, which must have requested this.
    """
    deadline = time.monotonic() + _PATIENCE
    pause = 0.0002
    for kill in (os.killpg, os.kill):  # it leads a group, unless it has just started
        with contextlib.suppress(OSError):
            kill(pid, signal.SIGKILL)
    while time.monotonic() < deadline:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return True
        for left in descendants(os.getpid()) if tree else ():
            with contextlib.suppress(OSError):
                os.kill(left, signal.SIGKILL)
        time.sleep(pause)
        pause = min(2 * pause, 0.02)
    return False


def address_space() -> int:
    """Bytes of this process's address space; 0 if the system does not report them."""
    with contextlib.suppress(OSError):
        return int(Path("/proc/self/statm").read_text().split()[0]) * _PAGE
    return 0
