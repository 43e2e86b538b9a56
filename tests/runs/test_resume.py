"""A run that was stopped goes on as if it never had been: the same bytes in the end."""

import ast
import contextlib
import errno
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time

import jax
import numpy as np
import pytest
import training_runs
from everyday import everyday
from orbax.checkpoint import CheckpointManager

from rlvr_jax.experience import Experience, RunActor
from rlvr_jax.runs import checkpoints, command, guarded, loop
from rlvr_jax.runs.checkpoints import Checkpoints, latest_step
from rlvr_jax.runs.state import HostState, RunState
from rlvr_jax.tasks import GradingError
from rlvr_jax.training import TrainState
from rlvr_jax.types import replace

SETTINGS = dict(method="grpo", minibatches=2, steps=4, checkpoint_every=1)
# Calls of the verifier: `CHECKS` by the self-check, one by the first evaluation, one by each step's
# rollouts and one more by the evaluations after steps 2 and 4.
IN_STEP_2, IN_EVALUATION_2, IN_STEP_3, IN_EVALUATION_4 = (
    training_runs.CHECKS + call for call in (3, 4, 5, 7)
)


class Crash(BaseException):
    """Nothing in a run expects it."""


def crash():
    raise Crash


def noted(done, name, function):
    """The function, with its name in a list of what was done."""

    def work(*arguments, **named):
        done.append(name)
        return function(*arguments, **named)

    return work


def settings_of(model, run_dir, **changes):
    return training_runs.settings(model, run_dir, **{**SETTINGS, **changes})


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


def test_a_checkpoint_is_what_was_saved_whatever_the_run_does_next(model, tmp_path):
    run = training_runs.prepared(settings_of(model, "unused"))
    state = run.initial_state()
    wanted = jax.tree.map(np.array, state)
    forget = jax.jit(lambda tree: jax.tree.map(lambda x: x * 0 + 7, tree), donate_argnums=0)
    checkpoints = Checkpoints(tmp_path / "checkpoints", state)
    checkpoints.save(1, state)
    forget(state)
    checkpoints.close()
    assert latest_step(tmp_path / "checkpoints") == 1
    again = Checkpoints(tmp_path / "checkpoints", state)
    like = run.initial_state()
    found = again.restore(1, like)
    again.close()
    # Both at once would take twice the memory of the run.
    on_devices = [leaf for leaf in jax.tree.leaves(like) if isinstance(leaf, jax.Array)]
    assert on_devices and all(leaf.is_deleted() for leaf in on_devices)
    jax.tree.map(np.testing.assert_array_equal, found, wanted)
    assert jax.tree.structure(found) == jax.tree.structure(wanted)


def test_an_array_may_be_larger_than_what_is_under_way(model, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "_IN_FLIGHT", 1)
    run = training_runs.prepared(settings_of(model, "unused"))
    state = run.initial_state()
    wanted = jax.tree.map(np.array, state)
    with contextlib.closing(Checkpoints(tmp_path, state)) as kept:
        kept.save(1, state)
        jax.tree.map(np.testing.assert_array_equal, kept.restore(1, state), wanted)


def test_no_step_begins_while_a_checkpoint_is_written(model, tmp_path, monkeypatch):
    done = []
    for name in ("save", "wait_until_finished"):
        own = getattr(CheckpointManager, name)
        monkeypatch.setattr(CheckpointManager, name, noted(done, name, own))
    monkeypatch.setattr(loop, "take_step", noted(done, "step", loop.take_step))
    training_runs.quietly(settings_of(model, tmp_path / "run", steps=2, checkpoint_every=1))
    assert [name for name, _ in itertools.groupby(done)] == 2 * [
        "step",
        "save",
        "wait_until_finished",
    ]


def state_of(**parts):
    """A state whose method has these parts, with these numbers."""
    method_state = jax.tree.map(np.asarray, parts)
    device = TrainState({}, (), method_state, np.asarray(0))
    return RunState(device, HostState(np.asarray(0), {}))


def test_a_checkpoint_names_its_arrays_by_their_fields(tmp_path):
    """One name for each array, of the device's state and of the host's."""
    state = state_of(b={"x": 2})
    state = replace(state, host=HostState(np.asarray(3), {"replay": np.zeros(2)}))
    with contextlib.closing(Checkpoints(tmp_path, state)) as kept:
        kept.save(1, state)
    names = json.loads((tmp_path / "1/default/_METADATA").read_text())["tree_metadata"]
    assert {ast.literal_eval(name)[0] for name in names} == {
        ".method_state['b']['x']",
        ".updates",
        ".sampled_tokens",
        ".data['replay']",
    }


def test_a_checkpoint_is_read_by_the_names_of_its_parts(tmp_path):
    with contextlib.closing(Checkpoints(tmp_path / "named", state_of())) as kept:
        kept.save(1, state_of(b=2, d=4))
        kept.save(2, state_of(b={"x": 2}))
    with contextlib.closing(Checkpoints(tmp_path / "named", state_of())) as kept:
        assert kept.restore(1, state_of(d=0, b=0)) == state_of(b=2, d=4)
        # A part that was inserted starts from its beginning.
        assert kept.restore(1, state_of(a=9, b=0, d=0)) == state_of(a=9, b=2, d=4)
        lacks = r"step 1 must .* without \.method_state\['a'\] and with .* \.method_state\['d'\]"
        with pytest.raises(ValueError, match=lacks):
            kept.restore(1, state_of(a=0, b=0))
        lacks = r"step 2 must .* without \.method_state\['b'\]\['y'\] and with .* none"
        with pytest.raises(ValueError, match=lacks):
            kept.restore(2, state_of(b={"x": 0, "y": 0}))


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
