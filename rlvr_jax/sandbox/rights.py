"""Rights that a process gives up permanently: its user, its capabilities, and its limits."""

import contextlib
import ctypes
import os
import resource
import struct
from collections.abc import Mapping
from typing import Any

from rlvr_jax.sandbox import linux

_LAST_CAPABILITY = 63  # later kernels may add some; the others do not exist
_PENDING = 256  # waiting signals and timers, which use the kernel's memory
_MB = 2**20


def become(user: int) -> None:
    """Changes to a user and the group of the same number, without any further group."""
    with contextlib.suppress(PermissionError):  # a namespace of an ordinary user denies it
        os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def drop_capabilities() -> None:
    """Drops all capabilities, and all ways to get one by starting a program; raises OSError if the
    kernel refuses."""
    with contextlib.suppress(OSError):  # unknown to this kernel, or we may not drop any
        for number in range(_LAST_CAPABILITY + 1):
            linux.prctl(24, number)  # PR_CAPBSET_DROP
    with contextlib.suppress(OSError):  # Linux 4.3
        linux.prctl(47, 4)  # PR_CAP_AMBIENT, clear all
    header = struct.pack("II", 0x20080522, 0)
    linux.call("capset", header, ctypes.create_string_buffer(24))


def limit(limits: Mapping[str, Any], memory_bytes: int, processes: int | None) -> None:
    """Sets the kernel's limits for one process.

    Args:
      limits: fields of `Limits`.
      memory_bytes: address space (bytes).
      processes: processes and threads of this user in its namespace; None: no limit.
    """
    cpu = int(-(-limits["cpu_seconds"] // 1))
    wanted = {
        resource.RLIMIT_CPU: (cpu, cpu + 1),  # a signal first, then the end
        resource.RLIMIT_AS: memory_bytes,
        resource.RLIMIT_FSIZE: limits["file_mb"] * _MB,
        resource.RLIMIT_NOFILE: limits["open_files"],
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MEMLOCK: 0,
    }
    if processes is not None:
        wanted[resource.RLIMIT_NPROC] = processes
    for name, value in (("MSGQUEUE", 0), ("RTPRIO", 0), ("SIGPENDING", _PENDING)):
        if hasattr(resource, f"RLIMIT_{name}"):
            wanted[getattr(resource, f"RLIMIT_{name}")] = value
    for kind, value in wanted.items():
        soft, hard = value if isinstance(value, tuple) else (value, value)
        most = resource.getrlimit(kind)[1]
        if most != resource.RLIM_INFINITY:
            soft, hard = min(soft, most), min(hard, most)
        with contextlib.suppress(ValueError, OSError):  # macOS refuses RLIMIT_AS
            resource.setrlimit(kind, (soft, hard))
