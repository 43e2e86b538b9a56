"""A run directory belongs to one job at a time."""

import contextlib
import os
import subprocess
import sys

import pytest
import training_runs

from rlvr_jax.parallel.lock import LOCK, locked

HOLDER = """
import sys, time
from pathlib import Path
from rlvr_jax.parallel.lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@contextlib.contextmanager
def holder(folder):
    """Another process, which has the directory and is killed in the end."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder)],
        env=training_runs.environment(),
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


@pytest.mark.thorough
def test_a_directory_that_another_job_uses_is_refused_until_it_is_gone(tmp_path):
    with holder(tmp_path / "run") as process:
        wanted = f"run-dir must be free, got .*run', which process {process.pid} on .* is using"
        with pytest.raises(ValueError, match=wanted), locked(tmp_path / "run"):
            pass
    with locked(tmp_path / "run"):
        assert (tmp_path / "run" / LOCK).read_text().startswith(f"process {os.getpid()} on")


@pytest.mark.thorough
def test_a_run_does_not_mix_with_one_that_lives(tmp_path):
    policy = training_runs.write_policy(tmp_path / "policy")
    with holder(tmp_path / "run"):
        config = training_runs.settings(policy, tmp_path / "run")
        with pytest.raises(ValueError, match="run-dir must be free"):
            training_runs.quietly(config)
    training_runs.quietly(config)
    assert not (tmp_path / "run" / LOCK).exists()


def test_a_directory_made_for_nothing_is_taken_away(tmp_path):
    with pytest.raises(KeyError), locked(tmp_path / "run"):
        raise KeyError
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "mine").mkdir()
    with locked(tmp_path / "mine"):
        pass
    assert list((tmp_path / "mine").iterdir()) == []


def test_a_directory_below_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("mine")
    wanted = "run-dir must be a directory to write in, got .*file/run': Not a directory"
    with pytest.raises(ValueError, match=wanted), locked(tmp_path / "file" / "run"):
        pass


@pytest.mark.parametrize("path", ["/proc/self/run", "/dev/null/run"])
def test_a_directory_that_cannot_be_made_is_refused_before_anything_is_loaded(path):
    with pytest.raises(ValueError, match=f"must be a directory to write in, got '{path}': "):
        training_runs.quietly(training_runs.settings("no policy", path, task="no_task"))
