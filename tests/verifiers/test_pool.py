"""Worker pools under attack: jobs are Python expressions, run by `eval` in the worker."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from rlvr_jax.verifiers.pool import Result, WorkerPool

WALL = 0.3  # seconds of a job that is to be given up
PATIENT = 60.0  # and of one that is not, however busy the machine is


def python(*lines: str) -> str:
    """An expression that executes statements."""
    return f"exec({chr(10).join(lines)!r}, {{}})"


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
    time.sleep(0.1)
    pool.close()
    thread.join(timeout=PATIENT / 2)
    assert not thread.is_alive()
    assert raised and "close()" in raised[0]
    with pytest.raises(RuntimeError, match=r"must be open, got a call after close"):
        pool.map(["1"])


def test_a_killed_server_is_replaced(pool):
    pool.map(["'before'"])
    victim = next(iter(pool._servers)).process.pid
    os.kill(victim, signal.SIGKILL)
    assert pool.map(["'again'", "'after'"]) == [Result(value="again"), Result(value="after")]


CALLER = """
import sys, os, signal, time
from rlvr_jax.verifiers.pool import WorkerPool
signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell starts behind & ignores it
pool = WorkerPool("builtins:eval", wall_seconds=60, workers=2)
pool.map(["1"])
print(pool._servers[0].process.pid, flush=True)
{then}
"""


def caller(then: str) -> tuple[subprocess.Popen, set[int]]:
    process = subprocess.Popen(
        [sys.executable, "-c", CALLER.format(then=then)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdout.readline()
    time.sleep(0.2)
    return process, processes(process.pid)


def vanish(pids: set[int], seconds: float = 3.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not pids & set(alive()):
            return True
        time.sleep(0.01)
    return False


@pytest.mark.thorough
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_no_worker_outlives_its_caller(end):
    process, workers = caller("pool.map(['all(iter(lambda: 1, 0))', '9**9**9**9'])")
    with process:
        assert len(workers) >= 4
        process.send_signal(end)
        process.communicate()
    assert vanish(workers)


@pytest.mark.thorough
@pytest.mark.parametrize("then", ["pool.close()", "sys.exit(3)", "del pool; time.sleep(9)"])
def test_no_worker_outlives_its_pool(then):
    process, workers = caller(then)
    with process:
        assert vanish(workers)
        process.kill()


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


@pytest.mark.thorough
def test_nothing_is_left_of_a_closed_pool():
    before = processes()
    with WorkerPool("builtins:eval", workers=2) as pool:
        pool.map(["1", "2"])
        assert processes() > before
    assert processes() == before


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
