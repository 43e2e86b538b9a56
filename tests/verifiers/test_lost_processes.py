"""Processes that die of something else than their job: no verdict, no memory, and a second try."""

import contextlib
import os
import signal
import subprocess
import sys
import threading

import pytest
from interference import again_and_again

from rlvr_jax.sandbox.watch import descendants
from rlvr_jax.verifiers import MathVerifier
from rlvr_jax.verifiers.pool import Result, WorkerPool

HARD = r"\int_0^1 \frac{\sin(x^7)\ln(1+x^3)}{\sqrt{1+x^5}} dx"
SLEEP = "__import__('time').sleep(0.3)"


def kill_serving(pool: WorkerPool) -> int:
    """Kills servers that have forked a worker, as the system does when memory runs out."""
    serving = [s.process.pid for s in list(pool._servers) if s.layers is not None]
    serving = [pid for pid in serving if descendants(pid)]
    for pid in serving:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return len(serving)


@pytest.fixture
def pool():
    with WorkerPool("builtins:eval", wall_seconds=5) as fresh:
        fresh.map(["0"])
        yield fresh


def test_a_job_whose_server_is_killed_is_run_again(pool):
    threading.Timer(0.1, kill_serving, (pool,)).start()
    assert pool.map([f"{SLEEP} or 7"]) == [Result(value=7)]
    assert pool.counters["restarts"] == 1


def test_servers_that_were_killed_between_jobs_cost_no_attempt():
    with WorkerPool("builtins:eval", workers=3) as pool:
        pool.map([f"{SLEEP} or {i}" for i in range(3)])
        assert kill_serving(pool) == 3
        for server in pool._servers:
            server.process.wait()
        assert pool.map(["7"]) == [Result(value=7)]


def test_a_job_that_is_lost_twice_has_no_result_and_is_not_remembered(pool):
    job = f"{SLEEP} or 7"
    with again_and_again(lambda: kill_serving(pool)):
        assert pool.map([job]) == [Result(error="server lost", lost=True)]
    assert pool.map([job]) == [Result(value=7)]


def test_a_worker_killed_from_outside_is_lost_and_not_wrong(pool):
    suicide = "__import__('os').kill(__import__('os').getpid(), 9)"
    if "pid" in pool.isolation:  # where it is the first process, which no signal of its own reaches
        suicide = "__import__('os').kill(1, 9) or __import__('os')._exit(137)"
    result = pool.map([suicide])[0]
    assert result == Result(error="worker was killed", lost=True)
    assert pool.map(["7"]) == [Result(value=7)]


def test_errors_are_not_remembered(pool):
    clock = "1 / (int(__import__('time').monotonic_ns()) * 0)"
    pool.map([clock])
    pool.map([clock])
    assert (pool.counters["cached"], pool.counters["errors"]) == (0, 2)


def test_a_job_does_not_pay_for_the_memory_of_the_one_before():
    hoard = "__import__('builtins').__dict__.setdefault('hoard', bytearray(150 * 2**20)) and 1 / 0"
    with WorkerPool("builtins:eval", memory_mb=256) as pool:
        failed, after = pool.map([hoard, "len(bytearray(150 * 2**20))"])
    assert "ZeroDivisionError" in failed.error
    assert after == Result(value=150 * 2**20)


def test_a_right_answer_stays_right_when_a_server_is_killed():
    with MathVerifier(workers=1) as verifier:
        verifier.grade([r"\sqrt{3}"], [r"\boxed{3^{1/2}}"])
        assert kill_serving(verifier.pool) == 1
        verdict = verifier.grade([r"\sqrt{8}"], [r"\boxed{2\sqrt{2}}"])[0]
    assert (verdict.outcome, verdict.stage) == (1.0, "digits")


@pytest.mark.thorough
@pytest.mark.parametrize("response", [rf"\boxed{{{HARD}}}", ""], ids=["answer", "gold"])
def test_what_is_lost_twice_has_no_verdict(response):
    gold = r"\sqrt{2}" if response else HARD
    with MathVerifier(workers=1, wall_seconds=20) as verifier:
        verifier.grade([r"\sqrt{3}"], [r"\boxed{3^{1/2}}"])
        verifier.grade([r"\sqrt{2}"], [""])
        with again_and_again(lambda: kill_serving(verifier.pool)):
            verdict = verifier.grade([gold], [response])[0]
    assert (verdict.outcome, verdict.timed_out, verdict.stage) == (None, False, "lost")


FORK = """
import multiprocessing, sys, threading
from rlvr_jax.verifiers.pool import WorkerPool

def child(pool, queue):
    queue.put([result.value for result in pool.map(["'child'", "6 * 7"])])
    pool.close()

pool = WorkerPool("builtins:eval", wall_seconds=5)
pool.map(["1"])
context = multiprocessing.get_context("fork")
queue = context.Queue()
held = threading.Thread(target=pool.map, args=(["__import__('time').sleep(2)"],))
held.start()
while not pool._lock.locked(): pass
process = context.Process(target=child, args=(pool, queue))
process.start()
print(queue.get(timeout=60))
process.join()
held.join()
print(pool.map(["'parent'"])[0].value, pool.counters["restarts"])
"""


@pytest.mark.thorough
def test_a_fork_of_the_caller_has_a_pool_of_its_own():
    run = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=90)
    assert run.stdout.splitlines() == ["['child', 42]", "parent 0"], run.stderr
