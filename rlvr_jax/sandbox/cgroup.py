"""A control group that limits the memory of a process tree, if the machine allows one."""

import contextlib
import os
import time
from pathlib import Path

_NAME = "rlvr_jax_sandbox_"
_PATIENCE = 2.0  # seconds
_SLACK_MB = 16  # for the server itself and page tables


class Group:
    """A group into which this process moves; processes that it starts later are counted with it.
    Raises OSError if no group can be made.

    Moving a process takes the kernel up to 20 ms, so it is done once and not for every program.
    """

    def __init__(self):
        self.path: Path
        self.path, self._limit, self._events = _make()
        self._memory_mb = 0
        (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def limit(self, memory_mb: int) -> None:
        """Sets the largest memory of all processes of the group, including files in memory. Raises
        OSError if the group still uses more."""
        end = time.monotonic() + _PATIENCE
        while memory_mb != self._memory_mb:
            try:
                (self.path / self._limit).write_text(str((memory_mb + _SLACK_MB) * 2**20))
                self._memory_mb = memory_mb
            except OSError:  # files of the previous program are still being freed
                if time.monotonic() > end:
                    raise
                time.sleep(0.01)

    def leave(self) -> None:
        """Returns to the parent group and removes this one."""
        with contextlib.suppress(OSError):
            (self.path.parent / "cgroup.procs").write_text(str(os.getpid()))
            self.path.rmdir()

    def killed(self) -> int:
        """Number of processes of the group that were killed for memory so far."""
        lines = (self.path / self._events).read_text().splitlines()
        return int(dict(line.split() for line in lines).get("oom_kill", 0))


def remove(path: str) -> None:
    """Removes a group whose processes were killed; the next server's start removes others."""
    end = time.monotonic() + _PATIENCE
    while Path(path).exists() and time.monotonic() < end:
        try:
            Path(path).rmdir()
        except OSError:  # the last of them are still ending
            time.sleep(0.01)


def _make() -> tuple[Path, str, str]:
    """An empty group with a limit on memory, and the names of its files."""
    refusal = OSError("no group for memory can be made")
    for parent, limit, events in _parents():
        path = parent / f"{_NAME}{os.getpid()}"
        try:
            _sweep(parent)
            path.mkdir(exist_ok=True)
            if (path / limit).exists():
                return path, limit, events
            path.rmdir()
        except OSError as error:
            refusal = error
    raise refusal


def _parents() -> list[tuple[Path, str, str]]:
    """Groups that may contain a new one: our group, then its parent."""
    mounts = {}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        left, _, right = line.partition(" - ")
        kind, _, options = right.split(" ", 2)
        if kind == "cgroup2" or (kind == "cgroup" and "memory" in options.split(",")):
            mounts[kind] = Path(left.split()[4])
    found = []
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        names = ("memory.max", "memory.events")
        kind = "cgroup2"
        if controllers:
            names = ("memory.limit_in_bytes", "memory.oom_control")
            kind = "cgroup" if "memory" in controllers.split(",") else ""
        if kind in mounts:
            own = mounts[kind] / path.lstrip("/")
            found += [(own, *names), (own.parent, *names)] if path != "/" else [(own, *names)]
    return found


def _sweep(parent: Path) -> None:
    """Removes the groups of servers that were killed."""
    for path in parent.glob(f"{_NAME}*"):
        if not Path("/proc", path.name.removeprefix(_NAME)).exists():
            with contextlib.suppress(OSError):
                path.rmdir()
