"""The sandbox from the caller's side: threads, lost servers, forks, leaks and refusals."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rlvr_jax.sandbox import Limits, Sandbox, allow_unsafe_local, client
from rlvr_jax.sandbox.layers import LAYERS, holds
from rlvr_jax.sandbox.watch import descendants

PATIENT = Limits(wall_seconds=20.0)  # for a machine with other work
SETTLED = 5.0  # seconds for the kernel to take down what has ended


def left() -> tuple[int, int, int]:
    """Processes, descriptors and mounts."""
    return (
        len(descendants(os.getpid())),
        len(list(Path("/proc/self/fd").iterdir())),
        len(Path("/proc/self/mountinfo").read_text().splitlines()),
    )


def others() -> set[int]:
    """Processes that this one has started: other tests leave some, such as pools of workers."""
    return set(descendants(os.getpid()))


def settled(before) -> bool:
    end = time.monotonic() + SETTLED
    while left() != before and time.monotonic() < end:
        time.sleep(0.02)
    return left() == before


def test_threads_share_a_sandbox():
    before, known = left(), others()
    with Sandbox(PATIENT, workers=2) as box, ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(lambda n: box.run(f"print({n})"), range(24)))
        assert len(others() - known) <= 2 + 4  # a program has two processes
    assert [int(outcome.stdout) for outcome in outcomes] == list(range(24))
    assert settled(before)


def test_a_program_that_is_ended_leaves_nothing():
    before = left()
    forks = "import os, time\nfor _ in range(3): os.fork()\ntime.sleep(60)"
    with Sandbox(Limits(wall_seconds=0.3)) as box:
        for without in range(3):
            assert box.run(forks).status is None, without
    assert settled(before)


@pytest.mark.parametrize("gone", [False, True])
def test_a_lost_server_costs_nothing(gone):
    """Whether it is still there when the program is sent, or not."""
    before, known = left(), others()
    with Sandbox(PATIENT) as box:
        box.run("")
        (server,) = others() - known
        os.kill(server, signal.SIGKILL)
        # It stays in the table of processes until somebody waits for it.
        while gone and ") Z " not in Path(f"/proc/{server}/stat").read_text():
            time.sleep(0.01)
        assert box.run("print(1)").stdout == "1\n"
    assert settled(before)


def test_a_server_that_is_lost_in_a_program_is_replaced_and_takes_the_program_along():
    before, known = left(), others()
    with Sandbox(PATIENT) as box:
        box.run("")
        (server,) = others() - known
        ended = threading.Timer(0.5, os.kill, (server, signal.SIGKILL))
        ended.start()
        assert box.run("import time; time.sleep(1); print(1)").stdout == "1\n"
        ended.join()
    assert settled(before)


def test_nothing_is_left_of_a_caller_that_is_killed():
    code = (
        "from rlvr_jax.sandbox import Sandbox, Limits\n"
        "print(1, flush=True)\n"
        "Sandbox(Limits(wall_seconds=60)).run('import time; time.sleep(60)')\n"
    )
    caller = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, env={**os.environ}
    )
    caller.stdout.read(1)
    end = time.monotonic() + SETTLED + PATIENT.wall_seconds
    while len(tree := descendants(caller.pid)) < 3 and time.monotonic() < end:
        time.sleep(0.02)
    caller.kill()
    caller.wait()
    caller.stdout.close()
    while any(map(alive, tree)) and time.monotonic() < end:
        time.sleep(0.02)
    assert len(tree) == 3
    assert not any(map(alive, tree))
    assert not list(Path("/sys/fs/cgroup").glob(f"*/**/rlvr_jax_sandbox_{tree[0]}"))


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_fork_of_the_caller_has_servers_of_its_own():
    """Forked while all slots are taken; in a process of its own, as this one has threads of JAX."""
    code = (
        "import os, threading, time\n"
        "from rlvr_jax.sandbox import Sandbox, Limits\n"
        "box = Sandbox(Limits(wall_seconds=20))\n"
        "box.run('')\n"
        "slow = threading.Thread(target=box.run, args=['import time; time.sleep(1)'])\n"
        "slow.start()\n"
        "time.sleep(0.2)\n"
        "if not (child := os.fork()):\n"
        "    os._exit(0 if box.run('print(1)').stdout == '1\\n' else 1)\n"
        "print(os.waitpid(child, 0)[1], box.run('print(2)').stdout)\n"
    )
    # From 3.12 on Python warns of a fork beside threads, which is what is tried here.
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.stdout.split(), done.stderr) == (["0", "2"], "")


def test_a_server_keeps_no_handles():
    known = others()
    with Sandbox(Limits(wall_seconds=0.3)) as box:
        box.run("")
        (server,) = others() - known
        handles = Path(f"/proc/{server}/fd")
        before = len(list(handles.iterdir()))
        for source in ("", "1 / 0", "import time; time.sleep(9)", "print('x' * 10**7)"):
            box.run(source)
        assert len(list(handles.iterdir())) == before


def test_a_closed_sandbox_says_so():
    box = Sandbox()
    box.close()
    with pytest.raises(RuntimeError, match="must be open, got a call after close"):
        box.run("")


def test_where_nothing_holds_programs_are_refused():
    nothing = set(LAYERS)
    with Sandbox(_without=nothing) as box, pytest.raises(RuntimeError, match="unsafe_local=True"):
        box.run("")
    with Sandbox(PATIENT, _without=nothing, unsafe_local=True) as box:
        assert box.run("print(1)").stdout == "1\n"
        assert box.missing.keys() == LAYERS.keys()


def test_a_process_may_allow_it_for_all_its_sandboxes(monkeypatch):
    monkeypatch.setattr(client, "_allowed", threading.Event())
    with Sandbox(PATIENT, _without=set(LAYERS)) as box:
        allow_unsafe_local()
        assert box.run("print(1)").stdout == "1\n"


@pytest.mark.parametrize(
    ("layers", "enough"),
    [
        (set(LAYERS), True),
        ({"landlock", "seccomp"}, True),
        ({"root", "net", "pid"}, True),
        ({"seccomp", "rlimits", "watch"}, False),
        ({"landlock", "rlimits"}, False),
        (set(), False),
    ],
)
def test_files_network_and_processes_need_a_layer_each(layers, enough):
    assert holds(layers) is enough


BAD = "\ud800"  # half a character: no text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"source": BAD}, r"source must be text \(UTF-8\), got '\\ud800'"),
        ({"source": b"\xff"}, r"source must be text \(UTF-8\), got b'\\xff'"),
        ({"source": 3}, r"source must be text \(UTF-8\), got 3"),
        ({"source": "", "stdin": b"\xfe"}, r"stdin must be text \(UTF-8\), got b'\\xfe'"),
        ({"source": "", "argv": "abc"}, r"argv must be a sequence of texts, got 'abc'"),
        ({"source": "", "argv": ["a", BAD]}, r"argv\[1\] must be text"),
        ({"source": "", "argv": ["a\0b"]}, r"argv\[0\] must not hold a NUL, got 'a\\x00b'"),
        ({"source": "", "files": {"a": b"\xff"}}, r"files\['a'\] must be text"),
        ({"source": "", "files": {BAD: ""}}, r"files must be text"),
        ({"source": "", "files": {"/etc/passwd": ""}}, r"below the folder, got '/etc/passwd'"),
        ({"source": "", "files": {"a/../../b": ""}}, r"below the folder, got 'a/../../b'"),
        ({"source": "", "files": {"": ""}}, r"below the folder, got ''"),
        ({"source": "", "files": {"a\0": ""}}, r"below the folder, got 'a\\x00'"),
        ({"source": "", "files": {"main.py": ""}}, r"must not hold the program itself"),
    ],
)
def test_bad_arguments_are_named(arguments, said):
    with Sandbox() as box, pytest.raises(ValueError, match=said):
        box.run(**arguments)


def test_text_may_come_as_bytes():
    with Sandbox(PATIENT) as box:
        assert box.run(b"print(input())", "ä".encode()).stdout == "ä\n"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"wall_seconds": 0}, r"wall_seconds must be a number in \(0, 1e\+06\), got 0"),
        ({"cpu_seconds": float("nan")}, r"cpu_seconds must be a number in \(0, 1e\+06\), got nan"),
        ({"cpu_seconds": "3"}, r"cpu_seconds must be a number in \(0, 1e\+06\), got '3'"),
        ({"cpu_seconds": 1e6}, r"cpu_seconds must be a number in \(0, 1e\+06\), got 1000000.0"),
        ({"memory_mb": 1}, r"memory_mb must be an integer from 16 to 2147483647, got 1"),
        ({"processes": 0}, r"processes must be an integer from 1 to 2147483647, got 0"),
        ({"processes": True}, r"processes must be an integer from 1 to 2147483647, got True"),
        ({"disk_mb": 1.5}, r"disk_mb must be an integer from 1 to 2147483647, got 1.5"),
        ({"packages": "numpy"}, r"packages must be a tuple of names, got 'numpy'"),
        ({"packages": ("../x",)}, r"packages must be names of modules, got '../x'"),
        ({"read": (".",)}, r"read must be absolute paths of files that exist, got '\.'"),
        ({"read": ("/",)}, r"read must be neither the root itself nor in /proc, got '/'"),
        ({"read": ("/no/such",)}, r"files that exist, got '/no/such'"),
    ],
)
def test_bad_limits_are_named(fields, said):
    with pytest.raises(ValueError, match=said):
        Limits(**fields)


def test_limits_may_be_at_their_ends_and_names_come_in_any_sequence():
    least = Limits(memory_mb=16, processes=1, disk_mb=1, file_mb=0, open_files=16, output_bytes=1)
    assert (least.file_mb, least.output_bytes) == (0, 1)
    assert Limits(disk_mb=2**31 - 1).disk_mb == 2**31 - 1
    assert Limits(packages=["json"], read=["/bin"]) == Limits(packages=("json",), read=("/bin",))


def test_an_unknown_package_is_named():
    message = "packages must be installed here, got 'no_such_package'"
    with Sandbox() as box, pytest.raises(ValueError, match=message):
        box.run("", limits=Limits(packages=("no_such_package",)))


def test_a_command_names_a_program():
    with (
        Sandbox() as box,
        pytest.raises(ValueError, match=r"command must name a program, got \[\]"),
    ):
        box.run_command([])


def test_there_is_at_least_one_worker():
    with pytest.raises(ValueError, match="workers must be at least 1, got 0"):
        Sandbox(workers=0)


def test_the_null_device_of_the_machine_keeps_its_owner():
    """Trying out the layers gives outputs to the user of the programs, for root."""
    before = Path(os.devnull).stat().st_uid
    with Sandbox() as box:
        assert box.missing is not None
    assert Path(os.devnull).stat().st_uid == before
