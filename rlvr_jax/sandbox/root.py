"""A separate root: a small file system in memory with only the files that a program needs."""

import contextlib
import ctypes
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rlvr_jax.sandbox import linux

WORK = "/sandbox"  # no folder of this name is likely to be shown
_NEW = "/proc"  # mount point for the new root: a folder that every machine has
_DEVICES = ("null", "random", "urandom", "full")
_STREAMS = {"fd": "fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}
_LINKS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")  # into /usr on many machines
_NODES_PER_MB = 256  # files and folders of a work folder

_READ_ONLY, _NO_SETUID, _NO_DEVICES, _NO_PROGRAMS = 1, 2, 4, 8
_REMOUNT, _BIND, _RECURSIVE, _PRIVATE = 32, 4096, 16384, 1 << 18
# Flags of a mount that a remount must repeat: statvfs calls these as mount does.
_REPEATED = _READ_ONLY | _NO_SETUID | _NO_DEVICES | _NO_PROGRAMS | 1024 | 2048
_RELATIVE_TIME, _RELATIVE_TIME_OF_STATVFS = 1 << 21, 4096


def sources(paths: Iterable[str]) -> dict[str, int]:
    """Handles on the paths of the root, opened while we are still a user who may reach them."""
    found = {}
    for path in (*paths, *(f"/dev/{name}" for name in _DEVICES)):
        with contextlib.suppress(FileNotFoundError):
            found[path] = os.open(path, os.O_PATH | os.O_CLOEXEC)
    return found


def enter(
    handles: Mapping[str, int], hidden: Sequence[str], further: Sequence[str], size: int, user: int
) -> None:
    """Makes the root and enters it; only the folder `/sandbox` is writable. Raises OSError without
    a namespace for mounts, or without the right to mount in it.

    If the machine allows it, there is a /proc, of only this namespace.

    Args:
      handles: `sources` of the visible paths, read-only, at their present places.
      hidden: folders below those that are shown empty.
      further: sources that are also visible in hidden folders.
      size: size of the work folder (MB).
      user: owner of the work folder.
    """
    _mount(None, "/", None, _RECURSIVE | _PRIVATE)
    os.chdir("/proc/self/fd")  # remains reachable when the new root covers /proc
    _mount("tmpfs", _NEW, "tmpfs", _NO_SETUID | _NO_DEVICES, "size=1m,nr_inodes=4k,mode=755")
    for name in _LINKS:
        if Path("/", name).is_symlink():
            target = str(Path("/", name).readlink()).lstrip("/")  # relative: it stays inside
            Path(_NEW, target).mkdir(mode=0o755, parents=True, exist_ok=True)
            Path(_NEW, name).symlink_to(target)
    for path in handles:
        if path not in further:
            _bind(path, handles[path])
    covers = [_NEW + path for path in hidden if Path(_NEW + path).is_dir()]
    for path in covers:
        _mount("tmpfs", path, "tmpfs", _NO_SETUID | _NO_DEVICES, "size=64k,nr_inodes=1k,mode=755")
    for path in further:
        _bind(path, handles[path])
    for folder in (WORK, "/proc"):
        Path(_NEW + folder).mkdir(mode=0o755)
    for name in ("tmp", "dev/shm"):
        if not Path(_NEW, name).exists():  # an interpreter may be in /tmp
            Path(_NEW, name).symlink_to(WORK)
    for name, target in _STREAMS.items():
        Path(_NEW, "dev", name).symlink_to(f"/proc/self/{target}")
    options = f"size={size}m,nr_inodes={_NODES_PER_MB * size},mode=700,uid={user},gid={user}"
    _mount("tmpfs", _NEW + WORK, "tmpfs", _NO_SETUID | _NO_DEVICES, options)
    _proc()
    for path in (_NEW, *covers):
        _mount(None, path, None, _REMOUNT | _BIND | _READ_ONLY | _NO_SETUID | _NO_DEVICES)
    linux.pivot_root(_NEW)
    os.chdir(WORK)


def _proc() -> None:
    """Shows the processes of this namespace, and if possible nothing of the kernel."""
    flags = _READ_ONLY | _NO_SETUID | _NO_DEVICES | _NO_PROGRAMS
    for options in ("subset=pid,hidepid=2", "hidepid=2"):
        try:
            _mount("proc", f"{_NEW}/proc", "proc", flags, options)
            return
        except OSError:  # an option that this kernel does not know, or no /proc for us
            continue


def _bind(path: str, handle: int) -> None:
    mode = os.fstat(handle).st_mode
    target = Path(_NEW + path)
    target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    if stat.S_ISDIR(mode):
        target.mkdir(mode=0o755, exist_ok=True)
    elif not target.exists():
        target.touch()
    _mount(str(handle), str(target), None, _BIND | _RECURSIVE)
    there = os.statvfs(target).f_flag
    flags = there & _REPEATED | _NO_SETUID | _READ_ONLY
    flags |= _RELATIVE_TIME if there & _RELATIVE_TIME_OF_STATVFS else 0
    flags |= 0 if stat.S_ISCHR(mode) else _NO_DEVICES
    _mount(None, str(target), None, _REMOUNT | _BIND | flags)


def _mount(
    source: str | None, target: str, kind: str | None, flags: int, options: str | None = None
) -> None:
    texts = [text if text is None else os.fsencode(text) for text in (source, target, kind)]
    linux.call("mount", *texts, ctypes.c_ulong(flags), options and options.encode())
