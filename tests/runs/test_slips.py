"""Slips in a user's own code end in one sentence with the part, the file and the line."""

import re

import pytest
import training_runs

from experiments.train import main
from rlvr_jax.runs import guarded

LINE = r"\(slips\.py, line \d+, in .*\)"
RETURNS = r"slip\(\): apply must return \(batch, state, metrics\)"
ZERO = rf"raised ZeroDivisionError: division by zero {LINE}"
SLIPS = {
    "batch_alone": f"{RETURNS}, got only Batch",
    "two_things": rf"{RETURNS}, got \(Batch, tuple\)",
    "nothing": f"{RETURNS}, got only NoneType",
    "no_batch": r"slip\(\): apply must return a Batch first, got Rollouts",
    "metrics_in_a_list": f"{RETURNS}, metrics a dict of numbers, got list",
    "metric_of_a_row": f"{RETURNS}, metrics a dict of numbers, got 'x': array",
    "stage_raises": rf"slip\(\): apply {ZERO}",
    "stage_broadcasts": rf"slip\(\): apply raised ValueError: operands could not .* {LINE}",
    "stage_asks_jax": rf"slip\(\): apply raised TypeError: dot_general requires .* {LINE}",
    "stage_observes": rf"slip\(\): observe {ZERO}",
    "draw_raises": rf"slip\(\): apply {ZERO}",
    "draw_alone": f"{RETURNS}, got only Batch",
    "curriculum_raises": rf"slip\(\): propose {ZERO}",
    "curriculum_gives_prompts": r"slip\(\): propose must return requests, got Prompt",
    "init_raises": rf"slip\(\): init {ZERO}",
    "environment_raises": rf"counting\(\): reply raised KeyError: 'nothing' {LINE}",
    "loss_raises": r"slips\.py, line \d+, in _divides: ZeroDivisionError: division by zero$",
    "loss_broadcasts": r"slips\.py, line \d+, in apply: \w+Error: .* shapes",
}


def ended(model, run_dir, monkeypatch, capsys, method, *more):
    """What a command prints on its way to its end, and its last words."""
    settings = training_runs.settings(model, run_dir, method=f"slips:{method}")
    line = training_runs.arguments(settings)
    monkeypatch.setattr("sys.argv", ["train", *line, *more])
    with pytest.raises(SystemExit) as exit:
        guarded(main)
    return capsys.readouterr(), str(exit.value)


@pytest.mark.parametrize("method", SLIPS)
def test_a_slip_ends_in_one_sentence(model, tmp_path, monkeypatch, capsys, method):
    printed, told = ended(model, tmp_path / "run", monkeypatch, capsys, method)
    assert re.match(f"error: {SLIPS[method]}", told)
    assert "Traceback" not in printed.err + told and "JAX has removed" not in told
    assert len(told.splitlines()) == 1


def test_a_slip_behind_the_first_step_names_the_step_and_the_saved_state(
    model, tmp_path, monkeypatch, capsys
):
    printed, told = ended(model, tmp_path / "run", monkeypatch, capsys, "late")
    line = rf"slip\(\): apply raised ValueError: no such thing {LINE}"
    assert re.match(f"error: step 2: {line}; the state before is saved$", told)
    assert "Traceback" not in printed.err


def test_the_traceback_comes_with_verbose(model, tmp_path, monkeypatch, capsys):
    printed, told = ended(model, tmp_path, monkeypatch, capsys, "stage_raises", "--verbose")
    assert "Traceback" in printed.err and "return 1 / 0" in printed.err
    assert told.startswith("error: slip(): apply raised ZeroDivisionError")


def test_a_fault_of_the_library_keeps_its_traceback(monkeypatch):
    def broken(arguments):
        return [].pop()

    monkeypatch.setattr("sys.argv", ["train"])
    monkeypatch.setattr("rlvr_jax.runs.guard.own_place", lambda error: None)
    with pytest.raises(IndexError):
        guarded(broken)
