"""The filter of system calls: a program for the kernel's packet-filter machine.

`syscalls` lists allowed and refused calls; a few depend on an argument. A filter sees the numbers
of a call but not the memory at their addresses, so only integers can have rules.
"""

import ctypes
import errno
import struct

from rlvr_jax.sandbox import linux, syscalls

_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000  # returned by the filter; the error number is added
_LOAD, _AND, _EQUAL, _AT_LEAST, _ABOVE, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x25, 0x06
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32 = 0x40000000  # x86_64 has the same calls again, plus this number

# Flags of clone that make namespaces (CLONE_NEWUSER and its like) or pass on a tracer.
_NEW_NAMESPACES = 0x7E020000 | 0x2000
_SHARED_MEMORY = 0x20 | 0x01  # MAP_ANONYMOUS with MAP_SHARED
_HUGE_PAGES = 0x40000  # MAP_HUGETLB: memory that no limit of memory counts
_FAMILY_UNIX, _STREAM = 1, 1
# Type into a terminal (TIOCSTI, TIOCLINUX); have signals sent to others (FIOSETOWN, SIOCSPGRP).
_IOCTL = (0x5412, 0x541C, 0x8901, 0x8902)
_FCNTL = (8, 15)  # have signals sent to others: F_SETOWN, F_SETOWN_EX
# Of prctl: death signal, dumpable, name, no_new_privs, seccomp's state, names of memory areas.
_PRCTL = (1, 2, 3, 4, 15, 16, 21, 23, 38, 39, 0x53564D41)


def program(*, shared_memory: bool, signals: bool, own_files: bool) -> bytes:
    """The filter, for `install`.

    Args:
      shared_memory: whether memory without a file may be shared. It must not be if memory is
        counted as a sum over processes: an unmapped page remains and is not counted.
      signals: whether processes may send signals; only if another layer keeps them inside.
      own_files: whether they may change owner, mode and times of files. Only if all files that they
        reach are their own or read-only, because Landlock does not check this.
    """
    machine = linux.MACHINE
    rules = syscalls.numbers(syscalls.RULED, machine)
    ending = _returns(_ERRNO | errno.ENOSYS)
    code = [
        _do(_LOAD, 4),
        _jump(_EQUAL, _ARCHITECTURES[machine], 1, 0),
        ending,
        _do(_LOAD, 0),
        _jump(_AT_LEAST, _X32, 0, 1),
        ending,
    ]
    for name, block in _blocks(shared_memory).items():
        code += [_jump(_EQUAL, rules.pop(name), 0, len(block)), *block]
    if signals:
        rules |= syscalls.numbers(syscalls.SIGNALS, machine)
    if own_files:
        rules |= syscalls.numbers(syscalls.OWN_FILES, machine)
    allowed = {*syscalls.numbers(syscalls.ALLOWED, machine).values(), *rules.values()}
    refused = {
        *syscalls.numbers(syscalls.REFUSED, machine).values(),
        *syscalls.numbers(syscalls.SIGNALS, machine).values(),
        *syscalls.numbers(syscalls.OWN_FILES, machine).values(),
    } - allowed
    for found, answer in ((allowed, _ALLOW), (refused, _ERRNO | errno.EPERM)):
        for low, high in _ranges(found):
            code += [_jump(_AT_LEAST, low, 0, 2), _jump(_ABOVE, high, 1, 0), _returns(answer)]
    return b"".join([*code, ending])


def install(code: bytes) -> None:
    """Puts this process and all that it starts under a filter, permanently. Raises OSError if the
    kernel has no filters, or no_new_privs is not set."""
    buffer = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("HxxxxxxQ", len(code) // 8, ctypes.addressof(buffer))
    linux.call("prctl", 22, ctypes.c_ulong(2), header, 0, 0)  # PR_SET_SECCOMP, filter


def _blocks(shared_memory: bool) -> dict[str, list[bytes]]:
    """The rules for arguments of a call; every block ends with a return."""
    blocks = {
        "clone": [*_masked(0, _NEW_NAMESPACES), *_answer(0, allow=True)],
        "fcntl": [_argument(1), *_answer(*_FCNTL, allow=False)],
        "ioctl": [_argument(1), *_answer(*_IOCTL, allow=False)],
        "prctl": [_argument(0), *_answer(*_PRCTL, allow=True)],
        # Limits and processors of other processes must not change; 0 is the caller.
        "prlimit64": [_argument(0), *_answer(0, allow=True)],
        "sched_setaffinity": [_argument(0), *_answer(0, allow=True)],
        # A connected pair of streams reaches only its ends; other kinds can be sent elsewhere.
        "socketpair": [
            _argument(0),
            _jump(_EQUAL, _FAMILY_UNIX, 1, 0),
            _returns(_ERRNO | errno.EPERM),
            *_masked(1, 0xF),
            *_answer(_STREAM, allow=True),
        ],
    }
    blocks["mmap"] = [
        *_masked(3, _HUGE_PAGES),
        _jump(_EQUAL, _HUGE_PAGES, 0, 1),
        _returns(_ERRNO | errno.EPERM),
        *_masked(3, _SHARED_MEMORY),
        *_answer(*(() if shared_memory else (_SHARED_MEMORY,)), allow=False),
    ]
    return blocks


def _answer(*values: int, allow: bool) -> list[bytes]:
    """Returns one answer if the loaded number is among the values, else the other answer."""
    inside, outside = _returns(_ALLOW), _returns(_ERRNO | errno.EPERM)
    if not allow:
        inside, outside = outside, inside
    tests = [_jump(_EQUAL, value, len(values) - at, 0) for at, value in enumerate(values)]
    return [*tests, outside, inside]


def _argument(index: int) -> bytes:
    """Loads the lower half of an argument; both machines are little-endian."""
    return _do(_LOAD, 16 + 8 * index)


def _masked(index: int, mask: int) -> list[bytes]:
    return [_argument(index), _do(_AND, mask)]


def _do(operation: int, value: int) -> bytes:
    return struct.pack("HBBI", operation, 0, 0, value)


def _jump(test: int, value: int, then: int, otherwise: int) -> bytes:
    return struct.pack("HBBI", test, then, otherwise, value)


def _returns(answer: int) -> bytes:
    return _do(_RETURN, answer)


def _ranges(found: set[int]) -> list[tuple[int, int]]:
    """Runs of consecutive numbers."""
    ranges: list[tuple[int, int]] = []
    for number in sorted(found):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
    return ranges
