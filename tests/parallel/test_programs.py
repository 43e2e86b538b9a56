"""Compiled programs are kept for the next start."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rlvr_jax.parallel import programs

SCRIPT = """
import jax
from rlvr_jax.parallel import programs
programs._SECONDS = 0.0
programs.keep_programs()
seen = []
jax.monitoring.register_event_listener(lambda event, **_: seen.append(event))
print(jax.jit(lambda x: jax.numpy.sin(x) + 1)(0.0))
print("hits", sum(event.endswith("/cache_hits") for event in seen))
"""


def started(**changes):
    """What the script says in a process of its own; changes are of the environment."""
    own = {name: x for name, x in os.environ.items() if not name.startswith("JAX_COMPILATION")}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        capture_output=True,
        text=True,
        env={**own, "PYTHONPATH": str(Path(__file__).parents[2])} | changes,
        check=True,
    )
    assert not done.stderr
    value, hits = done.stdout.split("\n")[:2]
    assert value == "1.0"
    return hits


@pytest.mark.thorough
def test_a_second_start_takes_what_the_first_one_compiled(tmp_path):
    cache = {"XDG_CACHE_HOME": str(tmp_path)}
    assert started(**cache) == "hits 0"
    assert list(tmp_path.glob("rlvr_jax/programs-*/*-cache"))
    assert started(**cache) != "hits 0"
    # A process that was killed leaves halves, which must not end in warnings.
    for path in tmp_path.glob("rlvr_jax/programs-*/*-atime"):
        path.unlink()
    assert started(**cache) == "hits 0" and started(**cache) != "hits 0"
    named = {"JAX_COMPILATION_CACHE_DIR": str(tmp_path / "named")}
    assert started(**cache, **named) == "hits 0" and list((tmp_path / "named").iterdir())


@pytest.mark.thorough
@pytest.mark.parametrize("case", ["off", "a file in the way"])
def test_nothing_is_kept_where_it_is_not_wanted_or_not_possible(case, tmp_path):
    (tmp_path / "file").touch()
    off = {"XDG_CACHE_HOME": str(tmp_path), "JAX_ENABLE_COMPILATION_CACHE": "false"}
    cache = off if case == "off" else {"XDG_CACHE_HOME": str(tmp_path / "file")}
    assert started(**cache) == "hits 0"
    assert not list(tmp_path.glob("rlvr_jax/programs-*/*-cache"))


def test_processors_do_not_share_programs(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    here = programs.programs_directory()
    assert here == programs.programs_directory() and here.parent == tmp_path / "rlvr_jax"
    text = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    monkeypatch.setattr(Path, "read_text", lambda self: text + "flags : another\n")
    assert programs.programs_directory() != here
