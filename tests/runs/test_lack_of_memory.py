"""Memory that runs out in a save, or in a thread as it starts, costs no state and hangs no run."""

import _thread
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import training_runs
from orbax.checkpoint import CheckpointManager

from rlvr_jax.runs.checkpoints import latest_step
from rlvr_jax.training.dying_threads import threads_must_start

LACKS = [MemoryError("no"), RuntimeError("can't start new thread")]


def fails():
    raise MemoryError


def test_a_thread_that_dies_of_memory_interrupts_the_main_thread():
    never = threading.Lock()
    never.acquire()
    rescue = threading.Timer(60, never.release)  # without the interruption the test would hang
    rescue.start()
    before = sys.unraisablehook, signal.getsignal(signal.SIGUSR2)
    with threads_must_start(), pytest.raises(MemoryError, match="a thread could not start"):
        _thread.start_new_thread(fails, ())
        never.acquire()
    assert rescue.is_alive()
    rescue.cancel()
    assert (sys.unraisablehook, signal.getsignal(signal.SIGUSR2)) == before


def test_other_reports_go_where_they_went(monkeypatch):
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", seen.append)
    report = SimpleNamespace(exc_type=ValueError)
    with threads_must_start():
        sys.unraisablehook(report)
    assert seen == [report]


@pytest.mark.thorough
@pytest.mark.parametrize("error", LACKS)
def test_a_save_without_memory_takes_the_reserve_and_the_run_ends(
    model, tmp_path, monkeypatch, error
):
    save, failed = CheckpointManager.save, []

    def once(self, step, **given):
        if step == 2 and not failed:
            failed.append(self)
            raise error
        return save(self, step, **given)

    monkeypatch.setattr(CheckpointManager, "save", once)
    config = training_runs.settings(model, tmp_path / "run", steps=3, checkpoint_every=1)
    told = "step 2: memory ran out while the state was written; the state after it is saved"
    with pytest.raises(ValueError, match=told):
        training_runs.quietly(config)
    assert latest_step(config.run_dir / "checkpoints") == 2
    training_runs.quietly(config.replace(resume=True))
    assert [line["step"] for line in training_runs.metrics(config.run_dir)] == [0, 1, 2, 3]


@pytest.mark.slow
def test_a_run_whose_address_space_ends_says_so(tmp_path):
    """3 MB are left after step 7: the next step, evaluation or save fails."""
    command = [sys.executable, "-m", "rlvr_jax", "train", "--method", "grpo", "--task", "brackets"]
    command += ["--steps", "200", "--evaluate-every", "5", "--checkpoint-every", "5"]
    command += ["--run-dir", str(tmp_path / "run")]
    metrics, said = tmp_path / "run/metrics.jsonl", tmp_path / "said"
    with said.open("w") as out, subprocess.Popen(command, stdout=out, stderr=out) as run:
        while not metrics.exists() or metrics.read_text().count("\n") < 8:
            assert run.poll() is None
            time.sleep(0.5)
        run.send_signal(signal.SIGSTOP)  # what it holds is read and limited at one moment
        status = Path(f"/proc/{run.pid}/status").read_text().splitlines()
        size = next(int(line.split()[1]) for line in status if "VmSize" in line)
        end = 1024 * size + 3_000_000
        resource.prlimit(run.pid, resource.RLIMIT_AS, (end, resource.RLIM_INFINITY))
        run.send_signal(signal.SIGCONT)
    assert run.returncode == 1
    assert re.search("^error: .*memory ran out", said.read_text(), re.MULTILINE)
    assert latest_step(tmp_path / "run/checkpoints") >= 5
