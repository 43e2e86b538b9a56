"""Hostile programs, read from `hostile/*.toml`, and the start that all of them share.

Every layer that is named stops the program alone, so it succeeds only where all of them are off.
What destroys is in small form: no more than a few hundred megabytes, processes or files, and no
victim but the ones that `suite` starts. Programs find those in `HOST`:

  port, udp: of listeners on 127.0.0.1; unix, datagrams: paths of sockets; abstract: a name of one;
  secret: a file that is not theirs to read; package: one of an installed package;
  target: a folder that is not theirs to write, with the file `precious`;
  victim: a process that sleeps, with the secret at `address` and in its environment;
  mark: a name for processes that outlive the run.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path

WON = "ESCAPED"
SECRET = "a secret of the host"
MARK = "hostile_orphan"  # at most 15 characters: the name of a process
# Small, so that passing them is a small thing.
LIMITS = {
    "wall_seconds": 4.0,
    "cpu_seconds": 1.0,
    "memory_mb": 96,
    "processes": 8,
    "disk_mb": 4,
    "file_mb": 2,
    "open_files": 32,
    "output_bytes": 2**16,
}

PRELUDE = f"""
import ctypes, errno, fcntl, gc, json, mmap, os, platform, resource, signal, socket, struct
import select, subprocess, sys, threading, time
HOST = json.loads(sys.argv[1])
SECRET = {SECRET!r}
libc = ctypes.CDLL(None, use_errno=True)
X86 = platform.machine() == "x86_64"

def won(when=True):
    if when:
        os.write(1, b"{WON}")

def call(x86, arm, *arguments):
    ctypes.set_errno(0)
    wide = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return libc.syscall(ctypes.c_long(x86 if X86 else arm), *wide)

def permitted(*unlike):
    return ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS, errno.EACCES, *unlike)

def children(number, work):
    for _ in range(number):
        if os.fork() == 0:
            try:
                work()
            finally:
                os._exit(0)

def stay():
    os.write(READY[1], b"x")
    os.close(READY[0])
    waiting = select.poll()
    waiting.register(READY[1], 0)
    waiting.poll(60000)  # until the first process has ended

def all_ready(number):
    os.close(READY[1])
    while number:
        if not os.read(READY[0], 1):
            return False
        number -= 1
    time.sleep(0.1)
    return not number

READY = os.pipe()
"""


@dataclass(frozen=True)
class Hostile:
    """One program.

    Fields:
      name: of its own.
      kind: of attack.
      layers: each of which stops it; "wall" and "output" are limits.
      source: what it does, behind `PRELUDE`.
      sign: how its success is seen: "said", it prints `WON`; "heard", a datagram arrives at the
        host; "wrote", the target folder is not what it was; "killed", the victim is gone;
        "outlived", a process named `MARK` is there after the run; "flooded", its output is beyond
        the limit; "forged", the outcome says that it ended well, or tells nothing about it.
      root: it can succeed only where it is started as root.
    """

    name: str
    kind: str
    layers: tuple[str, ...]
    source: str
    sign: str = "said"
    root: bool = False


SUBJECTS = ("network", "files", "processes", "kernel", "limits", "server")


def _read(subject: str) -> list[Hostile]:
    """The programs of one file; a program's name is its table's."""
    tables = tomllib.loads((Path(__file__).with_suffix("") / f"{subject}.toml").read_text())
    return [
        Hostile(name, **{**fields, "layers": tuple(fields["layers"].split())})
        for name, fields in tables.items()
    ]


HOSTILE = [program for subject in SUBJECTS for program in _read(subject)]
