"""Functions of the C library and constants of Linux that Python's modules lack."""

import ctypes
import os
import platform
import sys
from functools import cache
from typing import Any

MACHINE = {"arm64": "aarch64", "AMD64": "x86_64"}.get(platform.machine(), platform.machine())
# Numbers that are the same on all machines since Linux 5.1 are written where they are used.
_CLONE = {"x86_64": 56, "aarch64": 220}
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}


def on_linux() -> bool:
    """Whether this module can work; the numbers are known for two machines."""
    return sys.platform == "linux" and MACHINE in _CLONE


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def call(name: str, *arguments: Any) -> int:
    """Calls a function of the C library by name; raises OSError for a result below 0."""
    result = getattr(_libc(), name)(*arguments)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def syscall(number: int, *arguments: Any) -> int:
    """Makes a system call with integers as 64 bits; raises OSError if it failed."""
    wide = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    return call("syscall", ctypes.c_long(number), *wide)


def clone(flags: int) -> int:
    """Forks into new namespaces. The child skips fork handlers of Python and of the C library.

    Only for a process with one thread, and for a child that forks again before foreign code runs.
    """
    return syscall(_CLONE[MACHINE], flags, 0, 0, 0, 0)


def pivot_root(path: str) -> None:
    """Makes a mounted folder the root of this mount namespace; the old root is gone."""
    os.chdir(path)
    syscall(_PIVOT_ROOT[MACHINE], b".", b".")
    call("umount2", b".", 2)  # MNT_DETACH: the old root, which now covers the new one
    os.chdir("/")


def prctl(option: int, *values: int) -> int:
    """prctl(2); missing values are 0."""
    padded = (*values, 0, 0, 0, 0)[:4]
    return call("prctl", ctypes.c_int(option), *map(ctypes.c_ulong, padded))
