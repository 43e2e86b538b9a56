"""Processes of a pool: none outlives its job, its caller or its pool."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from pool_jobs import PATIENT, WALL, python

from rlvr_jax.verifiers.pool import Result, WorkerPool


def alive() -> dict[int, int]:
    """All processes of the machine that are not zombies, with their parents."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text(errors="replace").rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if state != "Z":
            parents[int(stat.parent.name)] = int(parent)
    return parents


def processes(root: int | None = None) -> set[int]:
    """All processes that descend from `root`, or from this one."""
    root = root or os.getpid()
    parents = alive()
    found, size = {root}, 0
    while len(found) > size:
        size = len(found)
        found |= {pid for pid, parent in parents.items() if parent in found}
    return found - {root}


def marked(mark: str) -> list[str]:
    """Processes anywhere on the machine that have `mark` as an argument."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark in path.read_text().split("\0"):
                found.append(path.parent.name)
        except OSError:
            pass
    return found


@pytest.mark.thorough
@pytest.mark.parametrize("wait", ["while True: pass", ""], ids=["timeout", "return"])
@pytest.mark.parametrize("leave", ["0", "os.setsid()", "(os.setsid(), os.fork() and os._exit(0))"])
def test_children_die_with_the_job(leave, wait):
    mark = f"mark-{os.getpid()}-{time.monotonic_ns()}"
    code = python(
        "import os, sys, time",
        "if os.fork() == 0:",
        f"  {leave}",
        f"  os.execv({sys.executable!r}, ['python', '-c', 'while True: pass', {mark!r}])",
        "time.sleep(0.1)",
        wait,
    )
    seconds = WALL if wait else PATIENT
    with WorkerPool("builtins:eval", wall_seconds=seconds, processes=4) as pool:
        result, after = pool.map([code, "5"])
        assert result.timed_out == bool(wait) and result.error in (None, "wall limit")
        assert after == Result(value=5)
        assert not marked(mark)


@pytest.mark.thorough
def test_a_fork_bomb_is_put_out():
    bomb = python("import os", "while True:", "  try: os.fork()", "  except OSError: pass")
    mine = processes()
    with WorkerPool("builtins:eval", wall_seconds=WALL) as pool:
        before = len(list(Path("/proc").glob("[0-9]*")))
        hostile, after = pool.map([bomb, "5"])
        assert hostile.error and after == Result(value=5)
        assert len(list(Path("/proc").glob("[0-9]*"))) < before + 50
    assert processes() == mine


def test_a_thread_left_behind_does_not_reach_the_next_job():
    code = python(
        "import sys, threading, time, builtins",
        "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
        "builtins.left = 1",
    )
    with WorkerPool("builtins:eval", wall_seconds=PATIENT, processes=2) as pool:
        assert pool.map([code, "hasattr(__builtins__, 'left')"])[1] != Result(value=True)


@pytest.mark.thorough
def test_without_namespaces_the_tree_of_a_job_still_dies():
    """In a user namespace that allows no further ones, the server is refused its own."""
    mark = f"mark-{os.getpid()}"
    leave = python(
        "import os, sys",
        "if os.fork() == 0:",
        "  os.setsid()",
        "  if os.fork(): os._exit(0)",
        f"  os.execv({sys.executable!r}, ['python', '-c', 'while True: pass', {mark!r}])",
        "while True: pass",
    )
    code = f"""
import ctypes, pathlib, sys
from rlvr_jax.verifiers.pool import WorkerPool
if ctypes.CDLL(None).unshare(0x10000000): sys.exit("refused")
try: pathlib.Path("/proc/sys/user/max_user_namespaces").write_text("0")
except OSError: sys.exit("refused")
for seconds, jobs in (0.3, [{leave!r}]), (60, ["__import__('os')._exit(3)", "6 * 7"]):
    with WorkerPool("builtins:eval", wall_seconds=seconds, processes=4) as pool:
        results = pool.map(jobs)
        print([r.value if r.error is None else r.error for r in results], pool.counters["restarts"])
print(sorted(pool.isolation))
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if ended.stderr.startswith("refused"):
        pytest.skip("this system grants no user namespace to begin with")
    hasty, patient, isolation = ended.stdout.splitlines()
    assert hasty == "['wall limit'] 0"
    assert patient == "['worker exited with status 3', 42] 0"
    assert "'tree'" in isolation and "'net'" not in isolation and "'pid'" not in isolation
    assert not marked(mark)


@pytest.mark.thorough
def test_closing_while_a_job_runs_ends_both():
    pool = WorkerPool("builtins:eval", wall_seconds=60)
    pool.map(["1"])
    raised = []

    def work():
        try:
            pool.map(["__import__('time').sleep(60)"])
        except RuntimeError as error:
            raised.append(str(error))

    thread = threading.Thread(target=work)
    thread.start()
    assert until(pool._lock.locked)
    pool.close()
    thread.join(timeout=PATIENT / 2)
    assert not thread.is_alive()
    assert raised and "close()" in raised[0]
    with pytest.raises(RuntimeError, match=r"must be open, got a call after close"):
        pool.map(["1"])


CALLER = """
import sys, os, signal, time
from rlvr_jax.verifiers.pool import WorkerPool
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored behind & of a shell
pool = WorkerPool("builtins:eval", wall_seconds=60, workers=2)
pool.map(["1"])
print(pool._servers[0].process.pid, flush=True)
sys.stdin.readline()
{then}
"""


def caller(then: str) -> tuple[subprocess.Popen, set[int]]:
    """A process with a pool that goes on with `then`, and its processes before that."""
    process = subprocess.Popen(
        [sys.executable, "-c", CALLER.format(then=then)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdout.readline()
    workers = processes(process.pid)
    process.stdin.write("\n")
    process.stdin.flush()
    return process, workers


def until(happened) -> bool:
    """Whether something happens before patience ends."""
    end = time.monotonic() + PATIENT
    while not happened() and time.monotonic() < end:
        time.sleep(0.01)
    return happened()


def vanish(pids: set[int]) -> bool:
    return until(lambda: not pids & set(alive()))


@pytest.mark.thorough
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_no_worker_outlives_its_caller(end):
    process, _ = caller("pool.map(['all(iter(lambda: 1, 0))', '9**9**9**9'])")
    with process:
        assert until(lambda: len(processes(process.pid)) >= 4)
        workers = processes(process.pid)
        process.send_signal(end)
        process.communicate()
    assert vanish(workers)


@pytest.mark.thorough
@pytest.mark.parametrize("then", ["pool.close()", "sys.exit(3)", "del pool; time.sleep(600)"])
def test_no_worker_outlives_its_pool(then):
    process, workers = caller(then)
    with process:
        gone = vanish(workers)
        process.kill()
    assert workers and gone


@pytest.mark.thorough
def test_a_fork_of_the_caller_leaves_the_workers_alone():
    fork = "os.fork() or sys.exit(0); os.wait(); print(pool.map(['41 + 1']), pool.counters)"
    process, _ = caller(fork)
    with process:
        out, _ = process.communicate()
    assert "value=42" in out and "'restarts': 0" in out


@pytest.mark.thorough
def test_an_interrupted_map_leaves_a_usable_pool():
    # The caller interrupts itself: from here, one could not know whether it maps already.
    code = """
import os, threading
threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()
try: pool.map(["__import__('time').sleep(50)"])
except KeyboardInterrupt: print(len(pool._servers), pool.map(["6 * 7"]))
"""
    process, _ = caller(code)
    with process:
        out, err = process.communicate()
    assert out.startswith("0 ") and "value=42" in out, (out, err)


@pytest.mark.thorough
def test_nothing_is_left_of_a_closed_pool():
    before = processes()
    with WorkerPool("builtins:eval", workers=2) as pool:
        pool.map(["1", "2"])
        assert processes() > before
    assert processes() == before
