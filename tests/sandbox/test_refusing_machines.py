"""Machines that refuse a layer, as containers and some systems do: made with a filter of calls."""

import errno
import json
import subprocess
import sys
from pathlib import Path

import pytest
from machine import needs_root_of_its_own

from rlvr_jax.sandbox import Sandbox, linux
from rlvr_jax.sandbox.layers import NAMESPACES

# Puts itself under a filter, and then the sandbox to the test.
SCRIPT = """
import json, os, struct, sys
from rlvr_jax.sandbox import Limits, Sandbox, linux, seccomp
from rlvr_jax.sandbox.programs import ESCAPED, HOSTILE, HONEST

def do(operation, value, then=0, otherwise=0):
    return struct.pack("HBBI", operation, then, otherwise, value)

code = []
for number, mask, value, error in json.loads(sys.argv[1]):
    test = do(0x15, 0, 1, 0) if value is None else do(0x15, value, 0, 1)
    refusal = [do(0x20, 16), do(0x54, mask), test] if mask else []
    block = [*refusal, do(0x06, 0x50000 | error), do(0x06, 0x7FFF0000)]
    code += [do(0x20, 0), do(0x15, number, 0, len(block)), *block]
linux.prctl(38, 1)
seccomp.install(b"".join([*code, do(0x06, 0x7FFF0000)]))
limits = Limits(wall_seconds=20, cpu_seconds=1, memory_mb=256, processes=12, disk_mb=16)
try:
    with Sandbox(limits) as box:
        missing = box.missing
        failed = [p.name for p in HONEST if box.run(p.source, p.stdin).stdout != p.stdout]
        quick = [p for p in HOSTILE if p.name not in ("sleeps", "burns time")]
        argv = [str(os.getpid()), "1"]
        out = [p.name for p in quick if ESCAPED in box.run(p.source, argv=argv).stdout]
        print(json.dumps([missing, failed, out]))
except RuntimeError as error:
    print(json.dumps(str(error)))
"""
CALLS = {
    "x86_64": {"clone": 56, "mount": 165, "prctl": 157},
    "aarch64": {"clone": 220, "mount": 40, "prctl": 167},
}[linux.MACHINE]
# The call; the bits of its first argument that are looked at (0: refused always); what they must
# be to be refused (None: any of them set); the error.
NO_NAMESPACES = (CALLS["clone"], 0x7E020000, None, errno.EPERM)
NO_MOUNTS = (CALLS["mount"], 0, 0, errno.EACCES)
NO_LANDLOCK = (444, 0, 0, errno.ENOSYS)
NO_FILTERS = (CALLS["prctl"], 0xFFFFFFFF, 22, errno.EINVAL)


def told(*refused):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(refused)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert not done.stderr
    return json.loads(done.stdout)


@pytest.mark.thorough
def test_containers_refuse_namespaces():
    missing, failed, out = told(NO_NAMESPACES)
    assert missing.keys() >= NAMESPACES.keys()
    assert "Operation not permitted" in missing["user"]
    assert failed == []
    assert out == []


@pytest.fixture
def rooted():
    """The machine itself refuses nothing."""
    with Sandbox() as box:
        needs_root_of_its_own(box)


@pytest.mark.thorough
@pytest.mark.usefixtures("rooted")
def test_some_systems_refuse_what_a_user_namespace_is_for():
    missing, failed, out = told(NO_MOUNTS)
    assert "root" in missing
    assert missing.keys() & {"user", "pid", "net", "landlock", "seccomp"} == set()
    assert failed == []
    assert out == []


@pytest.mark.thorough
@pytest.mark.usefixtures("rooted")
def test_old_kernels_have_no_landlock():
    missing, failed, out = told(NO_LANDLOCK)
    assert set(missing) - {"uid", "memory"} == {"landlock"}
    assert failed == []
    assert out == []


@pytest.mark.parametrize("refused", [(NO_NAMESPACES, NO_LANDLOCK), (NO_NAMESPACES, NO_FILTERS)])
def test_programs_are_refused_where_a_layer_too_many_is(refused):
    sentence = told(*refused)
    assert "keep programs from files, network and other processes, got one without" in sentence
    assert "user ([Errno 1] Operation not permitted)" in sentence
