"""Worker pools under attack: jobs are Python expressions, run by `eval` in the worker."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest
from pool_jobs import PATIENT, WALL, python

from rlvr_jax.verifiers.pool import Result, WorkerPool


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture(scope="module")
def pool():
    with WorkerPool("builtins:eval", wall_seconds=PATIENT, memory_mb=256) as shared:
        shared.map(["0"])
        yield shared


@pytest.fixture(scope="module")
def hasty():
    with WorkerPool("builtins:eval", wall_seconds=WALL, memory_mb=256) as shared:
        shared.map(["0"])
        yield shared


ENDLESS = {
    "python loop": python("while True: pass"),
    "one long call in C": "9**9**9**9",
    "sleep": "__import__('time').sleep(60)",
    "signals ignored": python(
        "import signal",
        "for s in set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP}:",
        "    try: signal.signal(s, signal.SIG_IGN)",
        "    except (OSError, ValueError): pass",
        "while True: pass",
    ),
    "every exception caught": python(
        "def f():",
        "  while True:",
        "    try:",
        "      while True: pass",
        "    except BaseException: pass",
        "f()",
    ),
    "stopped": python("import os, signal, time", "os.kill(0, signal.SIGSTOP)", "time.sleep(60)"),
    "half a reply": python(
        "import os, time",
        "for f in range(3, 20):",
        "  try: os.write(f, b'\\0\\0\\0')",
        "  except OSError: pass",
        "time.sleep(60)",
    ),
}
FAILING = {
    "exit": "__import__('os')._exit(3)",
    "sys.exit": "__import__('sys').exit(3)",
    "abort": "__import__('os').abort()",
    "crash": "__import__('ctypes').string_at(0)",
    "memory": "bytearray(10**10)",
    "memory, bit by bit": python(
        "import mmap", "x = []", "while True: x.append(mmap.mmap(-1, 2**24))"
    ),
    "recursion": python("def f(): f()", "f()"),
    "recursion without limit": python(
        "import sys",
        "sys.setrecursionlimit(10**9)",
        "class A:",
        "  def __repr__(self): return repr(self)",
        "repr(A())",
    ),
    "all files closed": python("import os", "os.closerange(0, 1000)"),
    "value that is no JSON": "object()",
    "large reply": "'x' * 10**7",
    "message too long announced": python(
        "import os",
        "for f in range(3, 20):",
        "  try: os.write(f, b'\\xff' * 8)",
        "  except OSError: pass",
    ),
    "large file": python("open('/tmp/' + 'x' * 20, 'wb', buffering=0).write(b'x')"),
    "file handles": "[open('/dev/null') for _ in range(1000)]",
    "kill of the parent": python(
        "import os, signal, time", "os.kill(os.getppid() or 10**9, signal.SIGKILL)"
    ),
    "interrupt": python("raise KeyboardInterrupt"),
    "alarm left behind": python("import signal", "signal.setitimer(0, 0.001)", "while True: pass"),
}


@pytest.mark.thorough
@pytest.mark.parametrize("attack", ENDLESS)
def test_an_endless_job_times_out_and_the_next_is_graded(hasty, attack):
    hostile, after = hasty.map([ENDLESS[attack], f"len({attack!r})"])
    assert hostile.timed_out and hostile.value is None
    assert after == Result(value=len(attack))


@pytest.mark.thorough
@pytest.mark.parametrize("attack", FAILING)
def test_a_failing_job_is_an_error_and_the_next_is_graded(pool, attack):
    hostile, after = pool.map([FAILING[attack], f"len({attack!r})"])
    if (
        attack != "kill of the parent"
    ):  # the first process of a namespace is deaf to its own signals
        assert hostile.error and not hostile.timed_out
    assert hostile.value is None
    assert after == Result(value=len(attack))


def test_what_a_job_prints_goes_nowhere(pool, capfd):
    noise = python(
        "import os, sys", "print('x' * 10**5)", "os.write(1, b'\\0\\0\\0\\1V')", "os.write(2, b'x')"
    )
    first, second = pool.map([noise, "1 + 2"])
    assert (first, second) == (Result(), Result(value=3))
    assert capfd.readouterr() == ("", "")


def test_a_second_reply_written_ahead_is_not_taken_for_the_next_one(pool):
    forged = python(
        "import os",
        "for f in range(3, 20):",
        "  try: os.write(f, b'\\0\\0\\0\\3V41' * 2)",
        "  except OSError: pass",
    )
    assert pool.map([forged, "40 + 2"])[1] == Result(value=42)


def test_jobs_share_nothing_if_each_has_its_own_worker():
    code = python("import builtins", "builtins.left = 1")
    look = "'left' in vars(__import__('builtins'))"
    with WorkerPool("builtins:eval", jobs_per_worker=1) as pool:
        assert pool.map([code, look])[1] == Result(value=False)
    with WorkerPool("builtins:eval") as pool:
        assert pool.map([code, look])[1] == Result(value=True)


@pytest.mark.thorough
def test_a_job_does_not_pay_for_the_one_before():
    poison = python("import resource", "resource.setrlimit(resource.RLIMIT_AS, (2**27, 2**27))")
    with WorkerPool("builtins:eval", wall_seconds=PATIENT) as pool:
        dying = "__import__('os')._exit(int('left' in vars(__import__('builtins'))) + 4)"
        results = pool.map([poison, python("import builtins", "builtins.left = 1"), dying])
        assert results[2].error == "worker exited with status 4"


def test_the_network_is_off_where_namespaces_are_granted(pool):
    if "net" not in pool.isolation:
        pytest.skip("this system grants no network namespace")
    up = "[n for _, n in __import__('socket').if_nameindex()]"
    reach = python("import socket", "socket.create_connection(('127.0.0.1', 9), timeout=0.1)")
    names, connection = pool.map([up, reach])
    assert names.value == ["lo"]
    assert "Network is unreachable" in connection.error


def test_other_processes_cannot_be_signalled_or_read_where_namespaces_are_granted(pool):
    if "pid" not in pool.isolation:
        pytest.skip("this system grants no process namespace")
    assert "ProcessLookupError" in pool.map([f"__import__('os').kill({os.getpid()}, 0)"])[0].error
    for secret in ("environ", "mem"):
        job = f"open('/proc/{os.getpid()}/{secret}', 'rb').read(1)"
        assert "PermissionError" in pool.map([job])[0].error


def test_a_worker_sees_no_secret_of_the_environment(monkeypatch):
    monkeypatch.setenv("SOME_TOKEN", "secret")
    with WorkerPool("builtins:eval") as pool:
        assert pool.map(["'SOME_TOKEN' in __import__('os').environ"]) == [Result(value=False)]


@pytest.mark.thorough
def test_results_keep_the_order_of_the_jobs():
    jobs = [f"__import__('time').sleep({(7 * i) % 5 / 200}) or {i}" for i in range(40)]
    with WorkerPool("builtins:eval", workers=3) as pool:
        assert [result.value for result in pool.map(jobs)] == list(range(40))


def test_a_result_is_remembered():
    clock = "__import__('time').monotonic_ns()"
    with WorkerPool("builtins:eval", cache_size=2, wall_seconds=PATIENT) as pool:
        first, again = pool.map([clock, clock])
        assert first == again == pool.map([clock])[0]
        assert pool.counters == {
            "jobs": 3, "cached": 2, "timed_out": 0, "errors": 0, "restarts": 0
        }  # fmt: skip
        pool.map(["1", "2", "3"])
        assert pool.map([clock])[0] != first


def test_time_outs_and_errors_are_counted(hasty):
    before = hasty.counters
    hasty.map(["__import__('time').sleep(61)", "1/0", "7"])
    assert hasty.counters["timed_out"] == before["timed_out"] + 1
    assert hasty.counters["errors"] == before["errors"] + 1


def test_a_job_over_the_size_cap_is_not_run():
    with WorkerPool("builtins:eval", job_bytes=100) as pool:
        large, small = pool.map(["'" + "x" * 100 + "'", "'x'"])
    assert "limit 100" in large.error and small == Result(value="x")


def test_any_text_goes_through(pool):
    text = "\ud800 \0 é \U0001f600 \u2028"
    assert pool.map([repr(text)])[0] == Result(value=text)


@pytest.mark.slow  # the system counts whole seconds
def test_the_cpu_limit_ends_a_job():
    with WorkerPool("builtins:eval", wall_seconds=20, cpu_seconds=0.1) as pool:
        result = pool.map([python("while True: pass")])[0]
    assert result.timed_out and result.error != "wall limit"


@pytest.mark.thorough
def test_threads_may_share_a_pool(pool):
    seen = {}

    def work(number):
        seen[number] = [r.value for r in pool.map([f"{number} * {i}" for i in range(20)])]

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {n: [n * i for i in range(20)] for n in range(4)}


def test_a_pool_outlives_the_thread_that_started_it():
    pool = WorkerPool("builtins:eval")
    thread = threading.Thread(target=pool.map, args=(["1"],))
    thread.start()
    thread.join()
    time.sleep(0.05)
    assert pool.map(["2"]) == [Result(value=2)]
    assert pool.counters["restarts"] == 0
    pool.close()


def test_a_killed_server_is_replaced(pool):
    pool.map(["'before'"])
    victim = next(iter(pool._servers)).process.pid
    os.kill(victim, signal.SIGKILL)
    assert pool.map(["'again'", "'after'"]) == [Result(value="again"), Result(value="after")]


@pytest.mark.thorough
def test_nothing_is_left_after_an_attack():
    files = open_files()
    with WorkerPool("builtins:eval", wall_seconds=0.1, workers=2, memory_mb=256) as pool:
        pool.map([*ENDLESS.values(), *FAILING.values()])
        used = open_files()
        pool.map([str(i) for i in range(500)])
        assert open_files() == used
        assert pool.map(["6 * 7"]) == [Result(value=42)]
        assert pool.counters["restarts"] <= (0 if "pid" in pool.isolation else 2)
    assert open_files() == files


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"function": "eval"}, r"function must be 'module:name', got 'eval'"),
        ({"function": "a:b", "workers": 0}, r"workers must be at least 1, got 0"),
        ({"function": "a:b", "wall_seconds": 0.0}, r"wall_seconds must be positive, got 0"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        WorkerPool(**arguments)


@pytest.mark.parametrize("function", ["no_such_module:f", "os:no_such_function"])
def test_a_function_that_cannot_be_imported_is_named(function):
    with (
        WorkerPool(function) as pool,
        pytest.raises(RuntimeError, match=f"got '{function}': .*no_"),
    ):
        pool.map([1])


def test_a_job_that_is_no_json_is_named(pool):
    with pytest.raises(ValueError, match=r"jobs must be JSON values, got \{1, 2\}"):
        pool.map([{1, 2}])
