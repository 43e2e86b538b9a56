"""Landlock: a process gives up its rights to files, TCP ports and signals, without privileges.

Source: https://docs.kernel.org/userspace-api/landlock.html
"""

import contextlib
import ctypes
import os
import stat
import struct
from collections.abc import Sequence

from rlvr_jax.sandbox import linux

_CREATE, _ADD, _RESTRICT = 444, 445, 446

_EXECUTE, _WRITE, _READ, _LIST, _TRUNCATE = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 14
_MAKE_DEVICES_AND_SOCKETS = 1 << 6 | 1 << 9 | 1 << 11
_ON_FILES = _EXECUTE | _WRITE | _READ | _TRUNCATE | 1 << 15
# Number of rights to files by version: 13, then links across folders, truncation, devices.
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}
_NEWEST_RIGHTS = 16
_TCP = 0b11  # bind, connect; from version 4
_SCOPES = 0b11  # abstract sockets and signals stay inside; from version 6
SIGNALS = 6  # the first version that keeps signals inside


def version() -> int:
    """The kernel's version of Landlock; 0 if there is none or it is switched off."""
    if not linux.on_linux():
        return 0
    try:
        return linux.syscall(_CREATE, 0, 0, 1)
    except OSError:
        return 0


def restrict(read: Sequence[str], write: Sequence[str], see: Sequence[str]) -> None:
    """Restricts this process, and all that it starts, to the files below some paths.
    Raises OSError if the kernel has no Landlock, or no_new_privs is not set.

    It cannot connect or listen by TCP (Linux 6.7), nor signal processes or reach abstract sockets
    outside (Linux 6.12). Paths that do not exist are left out.

    Args:
      read: files and folders that it may read and execute.
      write: files that it may write, and folders with all rights except making devices and sockets.
      see: folders whose names it may list recursively; imports of packages need this.
    """
    known = version()
    handled = (1 << _RIGHTS.get(known, _NEWEST_RIGHTS)) - 1
    rules = struct.pack("QQQ", handled, _TCP if known >= 4 else 0, _SCOPES if known >= 6 else 0)
    size = 8 if known < 4 else 16 if known < 6 else 24
    ruleset = linux.syscall(_CREATE, rules, size, 0)
    try:
        for path in read:
            _allow(ruleset, path, (_EXECUTE | _READ | _LIST) & handled)
        for path in write:
            _allow(ruleset, path, handled & ~_MAKE_DEVICES_AND_SOCKETS)
        for path in see:
            _allow(ruleset, path, _LIST)
        linux.syscall(_RESTRICT, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    with contextlib.suppress(FileNotFoundError):
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            if not stat.S_ISDIR(os.fstat(handle).st_mode):
                rights &= _ON_FILES
            if rights:  # a rule that allows nothing is an error
                rule = struct.pack("=Qi", rights, handle)
                linux.syscall(_ADD, ruleset, 1, ctypes.c_char_p(rule), 0)  # 1: beneath a path
        finally:
            os.close(handle)
