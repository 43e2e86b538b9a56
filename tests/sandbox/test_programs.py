"""What an honest program can do in the sandbox, and what is said of it."""

import sys
from pathlib import Path

import numpy as np
import pytest
from machine import needs_root_of_its_own

from rlvr_jax.sandbox import Limits, Sandbox, shared
from rlvr_jax.sandbox.programs import HONEST

BUSY = 20.0  # seconds that a machine with other work may take for a small program
PATIENT = Limits(wall_seconds=BUSY)


@pytest.fixture(scope="module")
def box():
    with Sandbox(PATIENT) as shared:
        yield shared


@pytest.fixture
def rooted(box):
    """The sandbox, where programs have a root of their own: /proc, /dev/shm, and packages that
    their user can read."""
    needs_root_of_its_own(box)
    return box


def said(outcome) -> str:
    assert (outcome.status, outcome.reason) == (0, ""), outcome
    return outcome.stdout


@pytest.mark.parametrize("program", HONEST, ids=lambda program: program.name)
def test_honest_programs_run(box, program):
    assert said(box.run(program.source, program.stdin)) == program.stdout


@pytest.mark.parametrize("without", [set(), {"user", "root", "pid", "net"}], ids=["all", "few"])
def test_a_program_gets_arguments_files_and_input(without):
    source = (
        "import sys, helper\n"
        "print(sys.argv, helper.NAME, open('data/a.txt').read(), input(), __name__)"
    )
    files = {"helper.py": "NAME = 'ä'", "data/a.txt": "x"}
    with Sandbox(PATIENT, _without=without) as few:
        outcome = few.run(source, "first\nsecond\n", ["-v", "ü"], files)
    assert said(outcome) == "['main.py', '-v', 'ü'] ä x first __main__\n"


@pytest.mark.parametrize(
    ("source", "status"),
    [
        ("", 0),
        ("raise SystemExit", 0),
        ("import sys; sys.exit(3)", 3),
        ("import sys; sys.exit('sorry')", 1),
        ("import os; os._exit(9)", 9),
        ("1 / 0", 1),
        ("print(", 1),
        ("x = '\0'", 1),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", 143),
        ("import ctypes; ctypes.string_at(0)", 139),
        ("def f(): f()\nf()", 1),
        ("x = 'x' * 10**10", 1),
    ],
)
def test_the_status_is_that_of_a_shell(box, source, status):
    outcome = box.run(source)
    assert (outcome.status, outcome.reason) == (status, ""), outcome


def test_an_exception_is_shown_as_python_shows_it(box):
    outcome = box.run("def f():\n    return 1 / 0\nf()")
    lines = outcome.stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1].endswith('main.py", line 3, in <module>')
    assert lines[-1] == "ZeroDivisionError: division by zero"
    assert "rlvr_jax/" not in outcome.stderr


@pytest.mark.parametrize(
    ("source", "stdin", "output"),
    [
        pytest.param(
            "import atexit, threading, time\n"
            "atexit.register(print, 'end')\n"
            "threading.Thread(target=lambda: (time.sleep(0.1), print('thread'))).start()\n"
            "print('main')",
            "",
            "main\nthread\nend\n",
            id="what is registered for the end, after threads",
        ),
        pytest.param(
            "out = open(1, 'w', closefd=False)\nout.write('x')", "", "x", id="a file left open"
        ),
        pytest.param(
            "import sys\nout, sys.stdout = sys.stdout, None\nout.write('x')",
            "",
            "x",
            id="an output that was replaced",
        ),
        pytest.param(
            "f = lambda n: n and 1 + f(n - 1)\nprint(f(980))", "", "980\n", id="deep calls"
        ),
        pytest.param(
            "import sys; print(len(sys.stdin.read()))",
            "ä" * 3_000_000,
            "3000000\n",
            id="megabytes of input",
        ),
    ],
)
def test_a_program_prints_what_it_prints_outside(box, source, stdin, output):
    assert said(box.run(source, stdin)) == output


def test_processes_of_its_own_work(rooted):
    source = (
        "from multiprocessing import Pool\n"
        "if __name__ == '__main__':\n"
        "    with Pool(2) as pool: print(pool.map(abs, [-1, -2]))"
    )
    assert said(rooted.run(source)) == "[1, 2]\n"


def test_outputs_that_are_no_text_are_replaced(box):
    outcome = box.run("import os; os.write(1, b'a\\xff'); os.write(2, b'\\xfe')")
    assert (outcome.stdout, outcome.stderr) == ("a�", "�")


def test_runs_are_alike(box):
    source = "import os; print(hash('x'), sorted(os.environ.items()), os.listdir())"
    assert said(box.run(source)) == said(box.run(source))


def test_nothing_of_the_caller_is_in_the_environment(box, monkeypatch):
    monkeypatch.setenv("API_KEY", "secret")
    with Sandbox(PATIENT) as fresh:
        assert "secret" not in said(fresh.run("import os; print(dict(os.environ))"))


def test_nothing_of_a_program_is_left_for_the_next(box):
    box.run("import os; open('left.txt', 'w'); os.environ['LEFT'] = '1'", files={"a.txt": "x"})
    left = said(box.run("import os, sys; print(os.listdir(), os.environ.get('LEFT'))"))
    assert left == "['main.py'] None\n"


def test_memory_holds_nothing_of_the_program_before(rooted):
    """The server forks all programs; what it never read cannot be in their memory."""
    needle = "needle-of-the-first-program"
    rooted.run(f"x = {needle!r}", stdin=needle, argv=[needle], files={"a.txt": needle})
    source = (
        "found = 0\n"
        "for line in open('/proc/self/maps'):\n"
        "    area, mode = line.split()[:2]\n"
        "    if mode.startswith('rw') and '[v' not in line:\n"
        "        low, high = (int(end, 16) for end in area.split('-'))\n"
        "        with open('/proc/self/mem', 'rb', buffering=0) as memory:\n"
        "            memory.seek(low)\n"
        "            parts = (memory.read(high - low) or b'').split(b'needle-of-')[1:]\n"
        "            found += sum(part.startswith(b'the-first') for part in parts)\n"
        "print(found)"
    )
    own = said(rooted.run("x = 'needle' + '-of-the-first-program'\n" + source))
    assert int(own) > 0  # the search finds what is there
    assert said(rooted.run(source)) == "0\n"


def test_packages_are_there_if_they_are_named(rooted):
    source = "import numpy; print(numpy.__version__, numpy.ones((9, 9)).dot(numpy.ones(9))[0])"
    named = rooted.run(source, limits=Limits(packages=("numpy",), wall_seconds=60, cpu_seconds=60))
    assert said(named) == f"{np.__version__} 9.0\n"
    assert "No module named 'numpy'" in rooted.run(source).stderr
    assert "No module named 'rlvr_jax'" in rooted.run("import rlvr_jax").stderr


def test_other_programs_run_if_the_root_holds_them(rooted):
    outcome = rooted.run_command(["/bin/cat", "a.txt", "-"], "b", {"a.txt": "a"}, limits=shell())
    assert said(outcome) == "ab"
    missing = rooted.run_command(["/bin/cat"])
    assert (missing.status, missing.stderr) == (127, "/bin/cat: No such file or directory\n")


def shell() -> Limits:
    return Limits(read=("/bin/cat", "/bin/echo"), wall_seconds=BUSY)


def test_equal_limits_share_a_sandbox():
    assert shared(PATIENT, most=1) is shared(PATIENT, most=1)
    assert said(shared(PATIENT, most=1).run("print(input())", "x")) == "x\n"


@pytest.mark.parametrize(
    ("limits", "source", "reason"),
    [
        (Limits(wall_seconds=0.2), "import time; time.sleep(9)", "wall"),
        (Limits(cpu_seconds=0.2, wall_seconds=BUSY), "while True: pass", "cpu"),
        (Limits(output_bytes=10, wall_seconds=BUSY), "print('x' * 11)", "output"),
        (Limits(disk_mb=1, wall_seconds=BUSY), "", "disk"),
    ],
)
def test_the_reason_names_the_limit(box, limits, source, reason):
    outcome = box.run(source, limits=limits, files={"large.txt": "x" * 2**21} if not source else {})
    assert (outcome.status, outcome.reason) == (None, reason), outcome


def test_a_full_folder_is_seen_at_the_end_where_it_was_not_seen_before():
    quick = "for n in range(3): open(str(n), 'wb').write(bytes(2**20))\nprint(1)"
    limits = Limits(disk_mb=1, wall_seconds=BUSY)
    with Sandbox(limits, _without={"root"}) as few:
        outcomes = [few.run(quick) for _ in range(10)]
    assert {(outcome.status, outcome.reason) for outcome in outcomes} == {(None, "disk")}


def test_memory_in_sum_has_a_reason(box):
    source = (
        "import os, time\n"
        "for _ in range(4):\n"
        "    if not os.fork(): x = bytearray(100 * 2**20); x[::4096] = x[::4096]; time.sleep(60)\n"
        "time.sleep(60)"
    )
    assert box.run(source, limits=Limits(memory_mb=200, wall_seconds=BUSY)).reason == "memory"


def test_output_up_to_the_limit_is_kept(box):
    limits = Limits(output_bytes=10, wall_seconds=BUSY)
    assert said(box.run("print('x' * 9)", limits=limits)) == "x" * 9 + "\n"
    assert box.run("print('x' * 99999)", limits=limits).stdout == "x" * 10


def test_seconds_are_those_of_the_program(box):
    assert 0.3 <= box.run("import time; time.sleep(0.3)").seconds < BUSY


def test_the_interpreter_is_the_one_of_the_caller(box):
    told = said(box.run("import sys; print(sys.version); print(sys.executable)")).splitlines()
    assert told[0] == sys.version.splitlines()[0]
    assert Path(told[-1]).exists()
