"""A hundred hostile programs against the sandbox, as root and as nobody: who gets out?"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pytest
import suite
from hostile import HOSTILE

from rlvr_jax.sandbox.layers import LAYERS

ROOT = Path(__file__).parents[2]
NOBODY = 65534
INTERPRETERS = ("/usr/bin/python3", "/usr/local/bin/python3")  # that everybody can reach
LEAST_OF_A_KIND = 3
MINUTES = 600  # seconds, on a machine that does other things


@pytest.fixture(scope="module")
def told_as_nobody():
    """Runs the suite as nobody, from a folder that nobody can read; what it prints."""
    if os.geteuid():
        pytest.skip("needs root to become nobody; as who we are the other tests run it")
    fit = "import sys; sys.exit(sys.version_info < (3, 11))"
    found = [
        path
        for path in INTERPRETERS
        if Path(path).exists()
        and not subprocess.run([path, "-c", fit], user=NOBODY, cwd="/").returncode
    ]
    assert found, "root has nobody's interpreter installed, or the suite was not run as nobody"
    folder = Path(tempfile.mkdtemp(prefix="hostile-suite-"))
    try:
        package = folder / "rlvr_jax"
        shutil.copytree(ROOT / "rlvr_jax/sandbox", package / "sandbox")
        shutil.copy(ROOT / "rlvr_jax/__init__.py", package)
        for name in ("suite.py", "hostile.py"):
            shutil.copy(Path(__file__).with_name(name), folder)
        shutil.copytree(Path(__file__).with_name("hostile"), folder / "hostile")
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)

        def run(*arguments: str) -> list:
            done = subprocess.run(
                [found[0], "-B", "suite.py", *arguments],
                cwd=folder,
                env={"PYTHONPATH": str(folder)},
                user=NOBODY,
                group=NOBODY,
                extra_groups=[],
                capture_output=True,
                text=True,
                timeout=MINUTES,
            )
            assert not done.stderr
            return [json.loads(line) for line in done.stdout.splitlines()]

        yield run
    finally:
        shutil.rmtree(folder)


NONE_WRONG = [{"programs": len(HOSTILE), "wrong": 0}]


def test_there_are_three_programs_of_each_kind_and_each_names_its_layers():
    kinds = Counter(program.kind for program in HOSTILE)
    assert min(kinds.values()) >= LEAST_OF_A_KIND
    assert len({program.name for program in HOSTILE}) == len(HOSTILE)
    for program in HOSTILE:
        assert program.layers
        assert set(program.layers) <= LAYERS.keys() | suite.WIDE.keys()


@pytest.mark.thorough
def test_no_first_of_its_kind_gets_out():
    assert suite.escapes(suite.FIRST, set()) == []


@pytest.mark.slow
def test_no_first_of_its_kind_gets_out_as_nobody(told_as_nobody):
    assert told_as_nobody("first") == NONE_WRONG


@pytest.mark.slow
def test_no_program_gets_out():
    assert suite.escapes(HOSTILE, set()) == []


@pytest.mark.slow
def test_no_program_gets_out_as_nobody(told_as_nobody):
    assert told_as_nobody() == NONE_WRONG


@pytest.mark.slow
def test_every_program_gets_out_where_its_layers_are_off():
    assert suite.off() == {}


@pytest.mark.slow
def test_every_program_gets_out_as_nobody_where_its_layers_are_off(told_as_nobody):
    assert told_as_nobody("off") == NONE_WRONG


@pytest.mark.slow
def test_each_layer_stops_its_programs_alone():
    assert suite.alone() == {}


@pytest.mark.slow
def test_each_layer_stops_its_programs_alone_as_nobody(told_as_nobody):
    assert told_as_nobody("alone") == NONE_WRONG


@pytest.mark.slow
def test_a_minute_of_everything_leaves_nothing_behind():
    command = [sys.executable, "-m", "rlvr_jax.sandbox.soak", "--minutes", "1"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=MINUTES)
    assert done.returncode == 0, done.stdout + done.stderr
