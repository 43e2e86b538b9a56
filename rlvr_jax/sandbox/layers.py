"""The layers of the sandbox, and those that this machine has: found by trial.

Some systems have a call and refuse its use: Ubuntu's AppArmor allows a user namespace and denies
its rights. So an empty program is run with all layers, and then without those that fail, until it
runs.
"""

import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from rlvr_jax.sandbox import cgroup, folder, inside, interpreter, landlock, linux, seccomp, watch
from rlvr_jax.sandbox.task import sealed

# In the order in which they are put on, with descriptions.
LAYERS = {
    "uid": "a separate user",
    "user": "user namespace",
    "pid": "processes: a program sees and signals only its own",
    "net": "network without a way out",
    "ipc": "shared memory and message queues",
    "uts": "host name",
    "cgroup": "names of control groups",
    "root": "a separate read-only root, with a work folder of limited size",
    "rlimits": "limits of one process",
    "capabilities": "all are dropped",
    "no_new_privs": "no program gives rights",
    "landlock": "files, TCP, signals",
    "seccomp": "filter of system calls",
    "handles": "open files of the server are closed",
    "memory": "control group for the memory of all processes",
    "watch": "memory, processes and CPU time of all processes, and disk, counted",
    "tree": "processes that remain are ended",
}
NAMESPACES = {
    "user": 0x10000000,
    "pid": 0x20000000,
    "net": 0x40000000,
    "root": 0x00020000,
    "ipc": 0x08000000,
    "uts": 0x04000000,
    "cgroup": 0x02000000,
}
# An untrusted program requires one layer of each pair: files, network, other processes.
_NEEDED = (("root", "landlock"), ("net", "seccomp"), ("pid", "seccomp"))
_OF_UNTRUSTED = {"uid", "root", "landlock", "seccomp", "memory"}
_OWN_USERS = 0x70000000  # our users: this number plus the number of the server's process
_MB = 2**20


class Refused(Exception):
    """A layer cannot be put on."""

    def __init__(self, layer: str, why: str):
        super().__init__(f"{layer}: {why}")
        self.layer = layer
        self.why = why


def holds(layers: Iterable[str]) -> bool:
    """Whether some layers protect files, network and other processes from a hostile program."""
    layers = set(layers)
    return all(layers & set(any_of) for any_of in _NEEDED)


class Layers:
    """The layers that are on, the missing layers with reasons, and the plan of a run.

    Args:
      without: layers to leave out, for tests.
      trusted: only a function of the caller runs, with the caller's files and user. The memory
        limit is not that of a group, because the function's imports would count in it.
    """

    def __init__(self, without: set[str], trusted: bool = False):
        self.on: frozenset[str] = frozenset(LAYERS)
        self.missing: dict[str, str] = {}
        self.read: list[str] = [] if trusted else interpreter.shown()
        self.hidden: list[str] = interpreter.hidden(self.read)
        self.allowed: list[str] = interpreter.singly(self.read, self.hidden)
        self.group: cgroup.Group | None = None
        self.user: int = os.geteuid()
        self.work: str = ""
        self._trusted = trusted
        self._entered: frozenset[str] = frozenset()
        self.leave_out(without | _OF_UNTRUSTED if trusted else without, "left out")
        if not linux.on_linux():
            unknown = set(LAYERS) - {"rlimits", "handles", "watch"}
            self.leave_out(unknown, "not Linux on x86_64 or aarch64")
        if not Path(f"/proc/self/task/{os.getpid()}/children").exists():
            self.leave_out({"watch", "tree"}, "the kernel does not list the children of a process")
        if not landlock.version():
            self.leave_out({"landlock"}, "the kernel has none")
        if os.geteuid():
            self.leave_out({"uid"}, "not started as root")
        if "memory" in self.on:
            try:
                self.group = cgroup.Group()
            except OSError as error:
                self.leave_out({"memory"}, str(error))
        if "tree" in self.on:
            try:
                linux.prctl(36, 1)  # orphans become ours: PR_SET_CHILD_SUBREAPER
            except OSError as error:
                self.leave_out({"tree"}, str(error))
        self._settle()

    def leave_out(self, layers: set[str], why: str) -> None:
        """Removes some layers, and the layers that depend on them."""
        if "user" in layers and os.geteuid():
            layers = layers | set(NAMESPACES)
        self.missing |= {layer: why for layer in layers & self.on}
        self.on -= layers

    def try_out(self, run: Callable[[dict[str, Any], list[int]], dict[str, Any]]) -> None:
        """Runs an empty program by (request, handles) -> reply, with fewer layers until it runs.
        Raises RuntimeError if no program can be started."""
        limits = {"wall_seconds": 60, "cpu_seconds": 30, "memory_mb": 256, "processes": 4}
        limits |= {"disk_mb": 1, "file_mb": 1, "open_files": 32}
        for _ in LAYERS:
            task = sealed(b'{"files": {"main.py": ""}, "argv": [], "command": []}')
            handles = [task, *(os.open(os.devnull, os.O_RDWR) for _ in range(3))]
            try:
                reply = run({"limits": limits, "read": [], "search": []}, handles)
                if reply["status"] != 0:
                    raise RuntimeError(f"an empty program ends with {reply}")
                return
            except Refused as refused:
                if refused.layer not in self.on:
                    raise RuntimeError(f"no program can be started: {refused}") from None
                whole = refused.layer == "pid"  # root without user namespaces
                self.leave_out(set(NAMESPACES) if whole else {refused.layer}, refused.why)
                self._settle()

    def plan(self, request: dict[str, Any]) -> inside.Plan:
        """The way to run a program; `request` as in `server`."""
        user = self.user if "uid" in self.on else None
        if "user" in self.on - self._entered:
            user = inside.INSIDE_USER
        work = ""
        if self.work:
            work = f"{self.work}/work"
            Path(work).mkdir(mode=0o700)
            if "uid" in self.on:
                os.chown(work, self.user, self.user)
        limits = request["limits"]
        return inside.Plan(
            layers=self.on - self._entered,
            limits=limits,
            read=self.read,
            hidden=self.hidden,
            further=request["read"],
            allowed=self.allowed,
            search=request["search"],
            work=work,
            user=user,
            memory_bytes=watch.address_space() + limits["memory_mb"] * _MB,
            processes=self._processes(limits["processes"], user),
            filter=self._filter,
        )

    def _processes(self, most: int, user: int | None) -> int | None:
        """The limit on the processes of a program's user. They include the first process, and the
        server in a namespace that it has entered."""
        if most == 1:
            return 1  # correct for any user, because other users only make the number larger
        if user is not None:
            return most + 1
        return most + 2 if "user" in self._entered else None

    def enter(self) -> None:
        """Puts this process into namespaces that workers may share; one takes milliseconds."""
        wanted = self.on & (NAMESPACES.keys() - {"pid", "root"})
        if not wanted:  # there may be no such call
            return
        try:
            user, group = os.geteuid(), os.getegid()
            linux.call("unshare", sum(NAMESPACES[layer] for layer in wanted))
            self._entered = frozenset(wanted)
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
            Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
        except OSError as error:
            self.leave_out(set(NAMESPACES) - self._entered, str(error))

    def first_message(self) -> dict[str, Any]:
        """The server's first message to the caller."""
        return {
            "layers": sorted(self.on),
            "missing": self.missing,
            "group": str(self.group.path) if self.group else "",
            "work": self.work,
        }

    def _settle(self) -> None:
        """Sets the values that follow from the active layers."""
        if "root" not in self.on:
            closed = _closed_to_others(self.read)
            if "uid" in self.on and closed:
                self.leave_out({"uid"}, f"no other user may pass through {closed}")
            if not self.work and not self._trusted:
                self.work = folder.make()
        self.user = _OWN_USERS + os.getpid() if "uid" in self.on else os.geteuid()
        self._filter = b""
        if "seccomp" in self.on:
            by_landlock = "landlock" in self.on and landlock.version() >= landlock.SIGNALS
            self._filter = seccomp.program(
                shared_memory=self.group is not None,
                signals="pid" in self.on or by_landlock,
                own_files="root" in self.on,
            )


def _closed_to_others(paths: Iterable[str]) -> str:
    """A folder above some paths that not every user may pass through; "" without one."""
    parents = (parent for path in paths for parent in Path(path).parents if parent.exists())
    return next((str(p) for p in parents if not p.stat().st_mode & stat.S_IXOTH), "")
