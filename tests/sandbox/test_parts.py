"""The parts of the sandbox that can be looked at without running anything in it."""

import errno
import os
import struct
from pathlib import Path

import pytest

from rlvr_jax.sandbox import folder, interpreter, linux, seccomp, syscalls

TABLES = ("ALLOWED", "RULED", "SIGNALS", "OWN_FILES", "REFUSED")
MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ALLOW = 0x7FFF0000
DENIED, UNKNOWN = 0x50000 | errno.EPERM, 0x50000 | errno.ENOSYS


def answer(code: bytes, number: int, arguments=(), architecture: int = 0) -> int:
    """What a filter returns: the kernel's machine, as far as these programs use it."""
    padded = (*arguments, *[0] * (6 - len(arguments)))
    data = struct.pack("IIQ6Q", number, architecture, 0, *padded)
    accumulator, at = 0, 0
    while True:
        operation, then, otherwise, value = struct.unpack_from("HBBI", code, 8 * at)
        at += 1
        if operation == 0x20:
            (accumulator,) = struct.unpack_from("I", data, value)
        elif operation == 0x54:
            accumulator &= value
        elif operation == 0x06:
            return value
        else:
            holds = {
                0x15: accumulator == value,
                0x35: accumulator >= value,
                0x25: accumulator > value,
            }
            at += then if holds[operation] else otherwise


@pytest.mark.parametrize("machine", MACHINES)
def test_a_call_stands_in_one_table(machine):
    found = [syscalls.numbers(getattr(syscalls, table), machine) for table in TABLES]
    numbers = [number for calls in found for number in calls.values()]
    assert len(numbers) == len(set(numbers))


@pytest.mark.parametrize("open_to", [True, False])
@pytest.mark.parametrize("machine", MACHINES)
def test_the_filter_answers_as_the_tables_say(machine, open_to, monkeypatch):
    monkeypatch.setattr(linux, "MACHINE", machine)
    code = seccomp.program(shared_memory=open_to, signals=open_to, own_files=open_to)
    sometimes = ALLOW if open_to else DENIED
    wanted = {"ALLOWED": ALLOW, "SIGNALS": sometimes, "OWN_FILES": sometimes, "REFUSED": DENIED}
    for table, right in wanted.items():
        for name, number in syscalls.numbers(getattr(syscalls, table), machine).items():
            assert answer(code, number, architecture=MACHINES[machine]) == right, name
    for number in (435, 5000, 0x40000000, 0x7FFFFFFF):  # clone3, later calls, those of x32
        assert answer(code, number, architecture=MACHINES[machine]) == UNKNOWN
    assert answer(code, 0, architecture=0x40000003) == UNKNOWN  # i386


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("name", "arguments", "allowed"),
    [
        ("clone", (0x003D0F00,), True),  # a thread
        ("clone", (17,), True),  # a child
        ("clone", (0x10000000 | 17,), False),
        ("clone", (0x02000000,), False),
        ("clone", (0x2000,), False),
        ("mmap", (0, 4096, 3, 0x22), True),
        ("mmap", (0, 4096, 3, 0x21), False),
        ("mmap", (0, 4096, 3, 0x23), False),
        ("mmap", (0, 4096, 3, 0x01), True),
        ("mmap", (0, 4096, 3, 0x40022), False),
        ("socketpair", (1, 1 | 0o2000000), True),
        ("socketpair", (1, 2), False),
        ("socketpair", (2, 1), False),
        ("prctl", (15,), True),
        ("prctl", (35,), False),
        ("ioctl", (0, 0x5401), True),
        ("ioctl", (0, 0x5412), False),
        ("fcntl", (0, 4), True),
        ("fcntl", (0, 8), False),
        ("prlimit64", (0,), True),
        ("prlimit64", (77,), False),
        ("sched_setaffinity", (0,), True),
        ("sched_setaffinity", (77,), False),
    ],
)
def test_some_calls_depend_on_an_argument(machine, name, arguments, allowed, monkeypatch):
    monkeypatch.setattr(linux, "MACHINE", machine)
    code = seccomp.program(shared_memory=False, signals=True, own_files=True)
    number = syscalls.numbers(syscalls.RULED, machine)[name]
    got = answer(code, number, arguments, MACHINES[machine])
    assert got == (ALLOW if allowed else DENIED)


def test_a_folder_is_removed_whatever_is_in_it(tmp_path):
    work = tmp_path / "work"
    (work / "closed").mkdir(parents=True)
    (work / "closed/file").write_text("x")
    (work / "closed").chmod(0)
    for number in range(3):
        (work / f"\n{number}/{number}/{number}").mkdir(parents=True)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x")
    (work / "link").symlink_to(outside)
    os.mkfifo(work / "pipe")
    here = os.open(work, os.O_RDONLY)
    for _ in range(1001):  # a path longer than the system takes, deeper than Python recurs
        os.mkdir("deep", dir_fd=here)
        deeper = os.open("deep", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(here)
    work.chmod(0)
    folder.remove(str(work))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["outside"]
    assert (outside / "precious").exists()


def test_the_size_of_a_folder_counts_all_below(tmp_path):
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/c").write_bytes(bytes(10_000))
    (tmp_path / "link").symlink_to("/usr")
    assert 10_000 <= folder.size(str(tmp_path)) < 100_000


def test_packages_are_found_with_what_belongs_to_them(tmp_path):
    for name in ("pack/__init__.py", "pack.libs/a.so", "pack-1.0.dist-info/METADATA", "one.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    found = interpreter.find_package("pack", ["/nowhere", str(tmp_path)])
    assert sorted(Path(path).name for path in found) == ["pack", "pack-1.0.dist-info", "pack.libs"]
    assert interpreter.find_package("one", [str(tmp_path)]) == [str(tmp_path / "one.py")]
    assert interpreter.find_package("other", [str(tmp_path)]) == []


def test_what_is_hidden_is_left_out_file_by_file(tmp_path):
    for name in ("python3/a.py", "python3/site-packages/b.py", "libx.so"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    hidden = interpreter.hidden([str(tmp_path)])
    assert hidden == [str(tmp_path / "python3/site-packages")]
    kept = interpreter.singly([str(tmp_path)], hidden)
    assert sorted(kept) == [str(tmp_path / "libx.so"), str(tmp_path / "python3/a.py")]


def test_nested_paths_are_shown_once():
    paths = ["/usr/lib", "/usr/lib/x", "/usr/lib64", "/usr/lib"]
    assert interpreter.without_nested(paths) == ["/usr/lib", "/usr/lib64"]
