"""A run that was stopped goes on as if it never had been: the same bytes in the end."""

import errno
import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest
import training_runs
from everyday import everyday
from resumed_runs import settings_of

from rlvr_jax.experience import Experience, RunActor
from rlvr_jax.runs import command, guarded
from rlvr_jax.runs.checkpoints import Checkpoints, latest_step
from rlvr_jax.tasks import GradingError

# Calls of the verifier: `CHECKS` by the self-check, one by the first evaluation, one by each step's
# rollouts and one more by the evaluations after steps 2 and 4.
IN_STEP_2, IN_EVALUATION_2, IN_STEP_3, IN_EVALUATION_4 = (
    training_runs.CHECKS + call for call in (3, 4, 5, 7)
)


class Crash(BaseException):
    """Nothing in a run expects it."""


def crash():
    raise Crash


@pytest.fixture(scope="module")
def uninterrupted(model, tmp_path_factory):
    """What a run that nobody stopped leaves."""
    run_dir = tmp_path_factory.mktemp("uninterrupted") / "run"
    training_runs.quietly(settings_of(model, run_dir))
    assert {path.name for path in (run_dir / "checkpoints").iterdir()} == {"3", "4"}
    return training_runs.contents(run_dir)


def crash_at(call, config):
    """Starts a run that ends when the verifier is called for the given time; returns its steps."""
    with training_runs.watched(training_runs.at_call(call, crash)), pytest.raises(Crash):
        training_runs.quietly(config)
    return [row["step"] for row in training_runs.metrics(config.run_dir)]


@pytest.mark.slow
def test_a_run_that_crashed_twice_ends_in_the_same_bytes(model, tmp_path, uninterrupted):
    def config(**changes):
        return settings_of(model, tmp_path / "run", **changes)

    # Without a checkpoint everything is done again.
    assert crash_at(IN_STEP_3, config(checkpoint_every=0)) == [0, 1, 2]
    assert crash_at(IN_EVALUATION_2, config(resume=True)) == [0, 1]
    training_runs.quietly(config(resume=True))
    assert training_runs.contents(tmp_path / "run") == uninterrupted


def test_steps_after_the_last_checkpoint_are_done_again(model, tmp_path, uninterrupted):
    config = settings_of(model, tmp_path / "run", checkpoint_every=2)
    assert crash_at(IN_EVALUATION_4, config) == [0, 1, 2, 3]
    training_runs.quietly(settings_of(model, tmp_path / "run", resume=True))
    assert training_runs.contents(tmp_path / "run") == uninterrupted


@pytest.mark.slow
def test_a_run_goes_on_in_other_sampling_batches(model, tmp_path, uninterrupted):
    training_runs.quietly(settings_of(model, tmp_path / "run", steps=2, sampling_batches=4))
    again = settings_of(model, tmp_path / "run", resume=True, sampling_batches=8)
    finished = []
    look = lambda: finished.append((tmp_path / "run/summary.json").exists())  # noqa: E731
    with training_runs.watched(look):
        training_runs.quietly(again)
    assert finished[0] and not finished[-1]
    found, wanted = training_runs.contents(tmp_path / "run"), dict(uninterrupted)
    # The sampler's log-probs are rounded as the number of rows has it, and curves of them are: by
    # float32 of numbers around 1, and of its square for the k3 of equal weights.
    curves = [
        [json.loads(line) for line in files.pop("metrics.jsonl").splitlines()]
        for files in (found, wanted)
    ]
    assert found == wanted
    for ours, theirs in zip(*curves, strict=True):
        assert ours == pytest.approx(theirs, rel=1e-6, abs=1e-12)


@pytest.mark.slow
def test_a_run_may_be_made_longer(model, tmp_path, uninterrupted):
    training_runs.quietly(settings_of(model, tmp_path / "run", steps=2))
    training_runs.quietly(settings_of(model, tmp_path / "run", resume=True))
    assert training_runs.contents(tmp_path / "run") == uninterrupted


def test_a_run_of_an_earlier_version_is_not_gone_on_with_under_other_names(model, tmp_path):
    config = settings_of(model, tmp_path, resume=True)
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "metrics.jsonl").write_text('{"step": 0, "held_out/truncated_share": 0.5}\n')
    with pytest.raises(ValueError, match="got truncated_share: read or resume the run with"):
        training_runs.quietly(config)


@pytest.mark.slow
def test_resuming_a_finished_run_changes_nothing(model, tmp_path, uninterrupted):
    for resume in (False, True):
        training_runs.quietly(settings_of(model, tmp_path / "run", resume=resume))
    assert training_runs.contents(tmp_path / "run") == uninterrupted


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_a_signal_ends_the_step_saves_and_exits_with_130(
    model, tmp_path, uninterrupted, capsys, number
):
    config = settings_of(model, tmp_path / "run", checkpoint_every=0)
    request = training_runs.at_call(IN_STEP_2, lambda: os.kill(os.getpid(), number))
    with training_runs.watched(request), pytest.raises(SystemExit) as stopped:
        guarded(lambda _: training_runs.quietly(config))
    assert stopped.value.code == 130
    assert capsys.readouterr().err == "stopped after step 2; continue with --resume\n"
    assert [row["step"] for row in training_runs.metrics(tmp_path / "run")] == [0, 1, 2]
    training_runs.quietly(settings_of(model, tmp_path / "run", resume=True))
    assert training_runs.contents(tmp_path / "run") == uninterrupted


def test_a_signal_behind_the_last_step_waits_for_what_is_written(model, tmp_path, monkeypatch):
    save = command.policy.save

    def asked(*arguments):
        os.kill(os.getpid(), signal.SIGTERM)
        save(*arguments)

    monkeypatch.setattr(command.policy, "save", asked)
    config = settings_of(model, tmp_path / "run")
    training_runs.quietly(config)
    assert (tmp_path / "run" / "summary.json").is_file()
    assert latest_step(tmp_path / "run" / "checkpoints") == config.steps


def test_a_second_signal_does_not_wait_for_the_step(model, tmp_path):
    def twice():
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    # A shell that starts tests in the background has it ignored.
    before = signal.getsignal(signal.SIGINT)
    with (
        training_runs.watched(training_runs.at_call(IN_STEP_2, twice)),
        pytest.raises(KeyboardInterrupt),
    ):
        training_runs.quietly(settings_of(model, tmp_path / "run"))
    assert signal.getsignal(signal.SIGINT) is before


SEVERAL = [
    dict(method="grpo", minibatches=2),
    dict(method="clip_cov", minibatches=2, epochs=2, hyperparameters=("fraction=0.2",)),
    dict(method="dapo"),
]
by_method = pytest.mark.parametrize("changes", SEVERAL, ids=lambda changes: changes["method"])


class Process:
    """A run in a process of its own, on the same compiled programs as the other ones."""

    def __init__(self, config, folder):
        self.run_dir = config.run_dir
        self.errors = folder / "stderr.txt"
        command = [sys.executable, training_runs.__file__, *training_runs.arguments(config)]
        environment = training_runs.environment() | {
            "JAX_COMPILATION_CACHE_DIR": str(folder / "compiled"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.2",
        }
        with self.errors.open("w") as file:
            self.handle = subprocess.Popen(
                command, env=environment, stdout=subprocess.DEVNULL, stderr=file
            )

    def wait(self):
        return self.handle.wait(timeout=300)

    def wait_for(self, happened):
        """Looks every millisecond; False if the process ended before it happened."""
        while self.handle.poll() is None:
            if happened():
                return True
            time.sleep(0.001)
        return False

    def lines(self):
        path = self.run_dir / "metrics.jsonl"
        return path.read_bytes().count(b"\n") if path.exists() else 0


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """Folder for what processes share."""
    return tmp_path_factory.mktemp("processes")


def long_settings(model, run_dir, **changes):
    return training_runs.settings(
        model, run_dir, steps=40, checkpoint_every=3, evaluate_every=5, **changes
    )


def alone(model, shared, changes):
    """Contents of the run that no one kills."""
    run_dir = shared / changes["method"]
    if not run_dir.exists():
        assert Process(long_settings(model, run_dir, **changes), shared).wait() == 0
    return training_runs.contents(run_dir)


@pytest.mark.slow
@by_method
def test_a_run_that_is_killed_again_and_again_ends_in_the_same_bytes(
    model, tmp_path, shared, changes
):
    wanted = alone(model, shared, changes)
    draw = random.Random(changes["method"])
    kills = 0
    for goal in (0, 5, 14, 27, 38):
        resume = (tmp_path / "run/config.json").exists()
        config = long_settings(model, tmp_path / "run", resume=resume, **changes)
        process = Process(config, shared)
        if process.wait_for(lambda p=process, g=goal: p.lines() > g):
            time.sleep(draw.uniform(0, 0.05))
            process.handle.send_signal(signal.SIGKILL)
        kills += process.wait() == -signal.SIGKILL
    assert kills >= 3
    config = long_settings(model, tmp_path / "run", resume=True, **changes)
    assert Process(config, shared).wait() == 0
    assert training_runs.contents(tmp_path / "run") == wanted


@pytest.mark.slow
def test_a_kill_while_a_checkpoint_is_written_costs_that_checkpoint_only(model, tmp_path, shared):
    changes = SEVERAL[0]
    wanted = alone(model, shared, changes)
    folder = tmp_path / "run/checkpoints"
    hit = 0
    for _ in range(3):
        resume = (tmp_path / "run/config.json").exists()
        process = Process(long_settings(model, tmp_path / "run", resume=resume, **changes), shared)
        left = set(folder.glob("*tmp*"))

        def writing(left=left):
            return set(folder.glob("*tmp*")) - left

        if process.wait_for(writing):
            process.handle.send_signal(signal.SIGKILL)
        process.wait()
        hit += any(folder.glob("*tmp*"))
    assert hit
    config = long_settings(model, tmp_path / "run", resume=True, **changes)
    assert Process(config, shared).wait() == 0
    assert training_runs.contents(tmp_path / "run") == wanted


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_process_that_is_asked_to_stop_says_one_sentence(model, tmp_path, shared, number):
    changes = SEVERAL[0]
    process = Process(long_settings(model, tmp_path / "run", **changes), shared)
    assert process.wait_for(lambda: process.lines() > 7)
    process.handle.send_signal(number)
    assert process.wait() == 130
    said = [line for line in process.errors.read_text().splitlines() if "PyTorch" not in line]
    assert len(said) == 1 and said[0].endswith("; continue with --resume")
    config = long_settings(model, tmp_path / "run", resume=True, **changes)
    assert Process(config, shared).wait() == 0
    assert training_runs.contents(tmp_path / "run") == alone(model, shared, changes)


def test_a_reward_that_raises_is_told_and_the_run_goes_on_from_the_step_before(
    model, tmp_path, uninterrupted
):
    def config(**changes):
        return settings_of(model, tmp_path / "run", checkpoint_every=0, **changes)

    def divide():
        raise ZeroDivisionError("by nothing")

    # It raises once in step 3, and when it is asked about a response alone.
    failing = training_runs.at_call(IN_STEP_3, divide)
    alone = training_runs.at_call(IN_STEP_3 + 1, divide)
    told = r"step 3: task 'sums': verify raised ZeroDivisionError: by nothing \(test_resume.py, .*"
    told += r" for prompt '. \+ . =' and response '.*'\. --failed-.*; the state before is saved"
    with (
        training_runs.watched(failing),
        training_runs.watched(alone),
        pytest.raises(GradingError, match=told),
    ):
        training_runs.quietly(config())
    training_runs.quietly(config(resume=True))
    assert training_runs.contents(tmp_path / "run") == uninterrupted


@pytest.mark.parametrize("error", everyday([ValueError, KeyError], KeyError))
def test_a_part_that_fails_leaves_the_state_before_its_step(
    model, tmp_path, uninterrupted, monkeypatch, error
):
    def config(**changes):
        return settings_of(model, tmp_path / "run", checkpoint_every=0, **changes)

    draw, calls = RunActor.draw, []

    def failing(*asked, **how):
        calls.append(asked)
        if len(calls) == 3:
            raise error("no such thing")
        return draw(*asked, **how)

    monkeypatch.setattr(RunActor, "draw", failing)
    with pytest.raises(error) as failed:
        training_runs.quietly(config())
    said = " ".join([str(failed.value), *getattr(failed.value, "__notes__", ())])
    assert "step 3" in said and "no such thing" in said and "the state before is saved" in said
    training_runs.quietly(config(resume=True))
    assert training_runs.contents(tmp_path / "run") == uninterrupted


def test_a_failure_behind_the_updates_saves_no_state(model, tmp_path, uninterrupted, monkeypatch):
    """Its weights are used up, and resuming takes up the last checkpoint."""
    observe, calls = Experience.observe, []

    def failing(*asked):
        calls.append(asked)
        if len(calls) == 3:
            raise ValueError("no such thing")
        return observe(*asked)

    monkeypatch.setattr(Experience, "observe", failing)
    with pytest.raises(
        ValueError, match=r"no such thing; the state in memory is lost; .* of step 2$"
    ):
        training_runs.quietly(settings_of(model, tmp_path / "run"))
    assert latest_step(tmp_path / "run/checkpoints") == 2
    training_runs.quietly(settings_of(model, tmp_path / "run", resume=True))
    assert training_runs.contents(tmp_path / "run") == uninterrupted


def test_an_error_is_told_where_its_state_cannot_be_saved(model, tmp_path, monkeypatch):
    def failing(self, requests, key, *others):
        monkeypatch.setattr(Checkpoints, "save", full)
        raise ValueError("no such thing")

    def full(self, step, state):
        raise OSError(errno.ENOSPC, "no room")

    draw = RunActor.draw
    calls = iter([draw, failing])
    monkeypatch.setattr(RunActor, "draw", lambda *asked: next(calls)(*asked))
    told = r"step 2: no such thing; the state before could not be saved: .*no room"
    with pytest.raises(ValueError, match=told):
        training_runs.quietly(settings_of(model, tmp_path / "run", checkpoint_every=0))
