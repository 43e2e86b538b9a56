"""One run of the sandbox: processes that hold the tests, processes that hold the program.

This is a separate program (`main`) inside the sandbox. Before it reads the tests it forks the
process in which the program will run, so the tests are never in that memory. Its messages go to a
pipe that the program does not have, after a word that the program does not know. Both processes
have one user. A process that is not dumpable cannot be inspected. The sandbox's filter has no
ptrace, no limits of other processes and no handles on them.
"""

import ctypes
import functools
import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rlvr_jax.verifiers.programs.python.candidate import fork_on_demand
from rlvr_jax.verifiers.programs.python.crossing import Gone
from rlvr_jax.verifiers.programs.python.judge import Judge

PROGRAM = "program.py"  # the file with the program
MOST_SILENT = 2  # tests in a row that used all their time, after which no test is run


def main() -> None:
    """Runs the tests that standard input holds; their number is argument 1.

    Standard input: `nonce`, `tests`, `wall_seconds` and `cpu_seconds` of each test,
    `total_seconds`. Standard output: a line with the nonce before the program runs, then a line for
    each test. It has the nonce, the test's number, a word, and the JSON text of the value if a call
    returned. The first line of a test counts. Argument 2 is the CPU time of a process.
    """
    count, cpu_seconds = map(int, sys.argv[1:3])
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE: others cannot look into us
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # KeyboardInterrupt is not raised in a test
    out = os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (1, 2):
        os.dup2(null, stream)
    pairs = [socket.socketpair() for _ in range(count)]
    control, theirs = socket.socketpair()
    source = Path(PROGRAM).read_text(encoding="utf-8")
    if not os.fork():
        os.dup2(null, 0)
        os.close(out)
        control.close()
        for ours, _ in pairs:
            ours.close()
        fork_on_demand(source, theirs, [end for _, end in pairs], cpu_seconds)
    theirs.close()
    for _, end in pairs:
        end.close()
    sys.set_int_max_str_digits(0)  # the tests are trusted
    with open(0, "rb", closefd=False) as stream:
        job = json.loads(stream.read())
    os.dup2(null, 0)
    os.chdir("/")
    del sys.path[0]  # the folder, in which a program may have put modules that we would import
    _write(out, f"{job['nonce']}\n".encode())
    conduct(
        job, [ours for ours, _ in pairs], control, functools.partial(_report, out, job["nonce"])
    )


def conduct(
    job: dict[str, Any],
    channels: Sequence[socket.socket],
    control: socket.socket,
    report: Callable[..., None],
) -> None:
    """Runs the tests one after the other while there is time. It stops when two in a row have used
    all their time without an answer, so a program that loops does not cost the time of every test.

    Args:
      job: as `main` reads it.
      channels: connections to the processes of the program, one for each test.
      control: connection to the process that forks them.
      report: takes the number of a test, a word and optionally a text.
    """
    deadline = time.monotonic() + job["total_seconds"]
    long, silent = 0.5 * min(job["wall_seconds"], job["cpu_seconds"]), 0
    for number, (test, channel) in enumerate(zip(job["tests"], channels, strict=True)):
        left = min(deadline - time.monotonic(), job["wall_seconds"])
        if left <= 0:
            return
        say = functools.partial(report, number)
        started = time.monotonic()
        ended, answered = _one(functools.partial(Judge(channel, say).run, test), control, left)
        say("ended" if ended else "time")  # counts where the test itself has not reported
        channel.close()
        silent = 0 if answered or time.monotonic() - started < long else silent + 1
        if silent == MOST_SILENT:
            return


def _one(run: Callable[[], None], control: socket.socket, seconds: float) -> tuple[bool, bool]:
    """Runs a test in a separate process, and a candidate for it. Returns whether it ended in time,
    and whether the program answered to the end."""
    control.sendall(b"x")
    received = control.recv(4, socket.MSG_WAITALL)
    if len(received) < 4:
        raise Gone  # a program has ended the process that forks: the rest is for another run
    theirs = int.from_bytes(received, "big")
    done, alive = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(done)
        try:
            run()
            os.write(alive, b"x")
        finally:
            os._exit(0)
    os.close(alive)
    ready, _, _ = select.select([done], [], [], seconds)
    answered = bool(ready) and os.read(done, 1) == b"x"
    os.close(done)
    for kill, whom in ((os.kill, pid), (os.killpg, theirs)):
        try:
            kill(whom, signal.SIGKILL)
        except OSError:  # it is gone, or not yet a group
            continue
    os.waitpid(pid, 0)
    return bool(ready), answered


def _report(out: int, nonce: str, number: int, word: str, text: str = "") -> None:
    _write(out, f"{nonce} {number} {word} {text}\n".encode())


def _write(handle: int, text: bytes) -> None:
    while text:
        text = text[os.write(handle, text) :]
