"""The command line: what a user gets wrong ends in one sentence, and nothing is made."""

import dataclasses
import errno
import re
import shutil
import sys

import pytest
import training_runs

from experiments import compare, evaluate, store_rollouts
from experiments.train import main
from rlvr_jax.runs import command, guarded, parse_config
from rlvr_jax.runs.run_writer import RunWriter
from rlvr_jax.tasks import Grade, graded_one_by_one


def without_prompts():
    return dataclasses.replace(training_runs.sums(), train=[])


def reward_of_nothing(prompt, response):
    return float("nan") if response.text else 0.0


def with_nan():
    return dataclasses.replace(training_runs.sums(), verify=graded_one_by_one(reward_of_nothing))


def with_brackets():
    """Its prompts look like the markup of the printer."""
    task = training_runs.sums()
    train = [dataclasses.replace(p, kind="[/]", gold="[bold]3[/red]") for p in task.train]
    verify = lambda prompts, responses: [Grade(0.5) for _ in prompts]  # noqa: E731
    return dataclasses.replace(task, train=train, verify=verify)


training_runs.without_prompts = without_prompts
training_runs.with_nan = with_nan
training_runs.with_brackets = with_brackets


def said_by(line, monkeypatch, capsys):
    """What the command says when it fails with this line."""
    monkeypatch.setattr(sys, "argv", ["train", *line])
    with pytest.raises(SystemExit) as stopped:
        guarded(main)
    code = stopped.value.code
    assert code not in (None, 0)
    shown = capsys.readouterr().err
    return code if isinstance(code, str) else shown


@pytest.fixture
def line(model, tmp_path):
    """A command line that works, with further options."""

    def with_options(*options, **changes):
        working = training_runs.settings(model, tmp_path / "run")
        config = working.replace(**changes)
        return [*training_runs.arguments(config), *options]

    return with_options


WRONG = {
    "unknown method": (dict(method="clip_kov"), "--method must be a method (closest: clip_cov"),
    "unknown hyperparameter": (
        dict(method="dapo", hyperparameters=("clip_hi=0.3",)),
        "got 'clip_hi'; closest: clip_high",
    ),
    "hyperparameter of another type": (
        dict(method="dapo", hyperparameters=("max_rounds=few",)),
        "--hyperparameters of dapo: max_rounds must be int like 10, got 'few'",
    ),
    "hyperparameter out of range": (
        dict(method="clip_cov", hyperparameters=("fraction=2",)),
        "fraction must be in (0, 1], got 2.0",
    ),
    "minibatches that do not divide": (
        dict(minibatches=3),
        "--minibatches must divide --prompts-per-step 4 (an update takes whole groups), got 3",
    ),
    "micro-batches that do not divide": (
        dict(micro_batches=3),
        "micro-batches must divide the 16 rollouts of an update, got 3",
    ),
    "prompt over the budget": (
        dict(prompt_tokens=3),
        "--prompt-tokens must be at least 4 for the longest train prompt, got 3: '",
    ),
    "response over the positions": (
        dict(response_tokens=29),
        "at most 28 for this model (max_positions 32, prompts of 4), got 29",
    ),
    "task without prompts": (
        dict(task="training_runs:without_prompts"),
        "Task 'sums': train must have prompts, got none",
    ),
    "unknown task": (dict(task="brakets"), "--task must be a task (closest: brackets"),
    "unknown module": (dict(task="no_such_module:sums"), "no module 'no_such_module'"),
    "unknown name in a module": (
        dict(task="training_runs:sumz"),
        "'sumz', got no such name; closest",
    ),
    "name that is no task": (dict(task="training_runs:WORDS"), "must be a Task or a function"),
    "no model": (
        dict(model=""),
        "model must be a policy folder for task 'training_runs:sums', which has none",
    ),
    "no such model": (
        dict(model="nowhere"),
        "--model must be a folder with a tokenizer.json, or a .gguf file, got 'nowhere'",
    ),
    "nothing to resume": (dict(resume=True), "--resume: --run-dir must contain a run, got"),
    "reward that is no number": (
        dict(task="training_runs:with_nan"),
        "reward_of_nothing: reward must be a finite number, got nan for prompt '",
    ),
}


@pytest.mark.parametrize(("changes", "sentence"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_said_in_one_sentence_and_nothing_is_made(
    changes, sentence, line, tmp_path, monkeypatch, capsys
):
    said = said_by(line(**changes), monkeypatch, capsys)
    assert said.startswith("error: ") and sentence in said
    assert "\n" not in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (["--learning-rat", "1e-4"], ["--learning-rat", "--learning-rate"]),
        (["--steps", "many"], ["--steps", "many"]),
        (["--seed"], ["--seed"]),
    ],
    ids=["unknown option", "option of another type", "option without value"],
)
def test_options_that_do_not_exist_or_fit_are_named(
    options, parts, line, tmp_path, monkeypatch, capsys
):
    said = said_by(line(*options), monkeypatch, capsys)
    assert all(part in said for part in parts)
    assert "Traceback" not in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("program", "options", "sentence"),
    [
        (store_rollouts, "--out x.npz --updates 0", "^--updates must be at least 1, got 0"),
        (compare, "--methods --seeds 1", "^--methods must be named once each, got none"),
        (compare, "--methods grpo grpo", "^--methods must be named once each, got grpo grpo"),
        # A preset's micro-batch would have fewer rollouts than there are devices.
        (
            evaluate,
            "--model nowhere --task arithmetic --mesh data=64",
            "multiply to the 8 devices, got 'data=64'",
        ),
    ],
)
def test_other_programs_are_refused_by_what_they_were_given(program, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        program.main(options.split())


def test_a_directory_that_holds_something_is_refused(line, tmp_path, monkeypatch, capsys):
    (tmp_path / "run").mkdir()
    (tmp_path / "run/notes.txt").write_text("mine")
    said = said_by(line(), monkeypatch, capsys)
    assert said.startswith("error: --run-dir must be new or empty (or give --resume), got")
    said = said_by(line(resume=True), monkeypatch, capsys)
    assert said.startswith("error: --resume: --run-dir must contain a run, got")
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["notes.txt"]


def test_a_file_in_the_place_of_the_directory_is_refused(line, tmp_path, monkeypatch, capsys):
    (tmp_path / "run").write_text("mine")
    said = said_by(line(), monkeypatch, capsys)
    assert said.startswith("error: --run-dir must be a directory to write in, got")
    assert said.endswith("run': File exists")


def test_a_policy_folder_is_no_run_to_resume(line, model, monkeypatch, capsys):
    said = said_by(line(resume=True, run_dir=model), monkeypatch, capsys)
    assert said.startswith("error: --resume: config.json must have the entries")


@pytest.fixture(scope="module")
def begun(model, tmp_path_factory):
    """The directory of a run that has taken no step; its method has a `top_p` of its own."""
    run_dir = tmp_path_factory.mktemp("begun") / "run"

    def stop():
        raise KeyboardInterrupt

    # The self-check grades before anything is made; the next time is in the run.
    asked = training_runs.at_call(training_runs.CHECKS + 1, stop)
    with training_runs.watched(asked), pytest.raises(KeyboardInterrupt):
        training_runs.quietly(training_runs.settings(model, run_dir, method="siren"))
    return run_dir


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (dict(learning_rate=0.5), "--learning-rate must be 0.01 as in the run, got 0.5"),
        (dict(seed=3), "seed must be 0 as in the run, got 3"),
        (dict(method="rloo"), "method must be 'siren' as in the run, got 'rloo'"),
        (
            dict(hyperparameters=("clip_low=0.1",)),
            "--hyperparameters clip_low must be 0.2 as in the run, got 0.1",
        ),
        (dict(top_p=0.5), "--top-p must be 1.0 as in the run, got 0.5"),
        (
            dict(hyperparameters=("top_p=0.5",)),
            "--hyperparameters top_p must be 0.8 as in the run, got 0.5",
        ),
        (dict(model="elsewhere"), "model must be '"),
        (dict(task="training_runs:other_sums"), "(fingerprint"),
    ],
    ids=[
        "setting",
        "seed",
        "method",
        "hyperparameter",
        "setting with the name of a hyperparameter",
        "hyperparameter with the name of a setting",
        "model",
        "task data",
    ],
)
def test_a_run_goes_on_only_with_its_own_settings_and_data(
    changes, sentence, begun, line, monkeypatch, capsys
):
    monkeypatch.setattr(
        training_runs, "other_sums", lambda: training_runs.sums(offset=1), raising=False
    )
    before = (begun / "config.json").read_bytes()
    changes = dict(method="siren", run_dir=begun, resume=True) | changes
    said = said_by(line(**changes), monkeypatch, capsys)
    assert said.startswith("error: --resume: ") and sentence in said and "\n" not in said
    assert (begun / "config.json").read_bytes() == before


def test_a_run_goes_on_without_being_told_its_settings_again(begun, model):
    began = training_runs.settings(model, begun, method="siren", resume=True)
    line = ["--resume", "--run-dir", str(begun)]
    assert parse_config(line) == began
    longer = began.replace(steps=9)
    assert parse_config([*line, "--steps", "9", "--method=siren"]) == longer


def test_settings_that_are_given_again_must_be_those_of_the_run(begun, monkeypatch, capsys):
    line = ["--resume", "--run-dir", str(begun), "--seed", "1"]
    said = said_by(line, monkeypatch, capsys)
    assert said.startswith("error: --resume: --seed must be 0 as in the run, got 1")


@pytest.mark.parametrize(
    ("left", "sentence"),
    [
        ("summary.json", "a finished run must have a checkpoint to continue from, got none in"),
        ("checkpoints/7", "steps must be at least the 7 that the run has taken, got 3"),
    ],
)
def test_what_a_run_holds_is_not_lost_where_it_cannot_go_on(
    left, sentence, begun, line, tmp_path, monkeypatch, capsys
):
    run_dir = tmp_path / "run"
    shutil.copytree(begun, run_dir)
    shutil.rmtree(run_dir / "checkpoints")
    (run_dir / left).mkdir(parents=True) if "/" in left else (run_dir / left).write_text("{}")
    (run_dir / "metrics.jsonl").write_text('{"step": 0}\n')
    said = said_by(line(method="siren", resume=True), monkeypatch, capsys)
    assert said.startswith("error: --resume: ") and sentence in said and "\n" not in said
    assert (run_dir / "metrics.jsonl").read_text() == '{"step": 0}\n'


def test_a_full_disk_is_said_in_one_sentence(line, monkeypatch, capsys):
    def full(writer, step, metrics, timings):
        raise OSError(errno.ENOSPC, "No space left on device", "metrics.jsonl")

    monkeypatch.setattr(RunWriter, "log", full)
    said = said_by(line(), monkeypatch, capsys)
    assert said.startswith("error: the disk is full at metrics.jsonl (")
    assert said.endswith("free space and use --resume") and "\n" not in said


def test_texts_that_look_like_markup_are_printed_as_they_are(line, monkeypatch, capsys):
    def stop(writer, step, metrics, timings):
        raise KeyboardInterrupt

    monkeypatch.setattr(RunWriter, "log", stop)
    options = line(task="training_runs:with_brackets", method="siren", verbose=True)
    monkeypatch.setattr(sys, "argv", ["train", *options])
    with pytest.raises(SystemExit) as stopped:
        guarded(main)
    assert stopped.value.code == 130
    shown = capsys.readouterr().out
    assert "'[bold]3[/red]'" in shown
    # A setting and a hyperparameter of one name are both shown.
    assert re.search(r"(^| )top_p +1\.0\b", shown, re.MULTILINE)
    assert re.search(r"method\.top_p +0\.8\b", shown)


def test_processes_with_other_prompts_are_refused_before_anything_is_loaded(
    model, tmp_path, monkeypatch
):
    monkeypatch.setattr(command.parallel, "gather", lambda value: [value, value and "another"])
    config = training_runs.settings(model, tmp_path / "run")
    with pytest.raises(ValueError, match=r"same prompts in all processes, .*'another'\]"):
        training_runs.quietly(config)
    assert not config.run_dir.exists()


@pytest.mark.thorough
def test_a_disk_without_room_for_a_checkpoint_is_said_before_it_is_written(
    line, model, tmp_path, monkeypatch, capsys
):
    usage = shutil.disk_usage(tmp_path)._replace(free=2**10)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    said = said_by(line(), monkeypatch, capsys)
    where = tmp_path / "run/checkpoints"
    wanted = f"error: the disk is full at {where} (0 MiB free); free space and use --resume"
    assert said == wanted
    assert not list(where.glob("[0-9]*"))
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.thorough
def test_a_checkpoint_that_fills_the_disk_is_a_full_disk(line, tmp_path, monkeypatch, capsys):
    from orbax.checkpoint import CheckpointManager

    def full(self, *args, **options):
        raise ValueError("RESOURCE_EXHAUSTED: Error writing: No space left on device [28]")

    monkeypatch.setattr(CheckpointManager, "save", full)
    said = said_by(line(), monkeypatch, capsys)
    assert said.startswith(f"error: the disk is full at {tmp_path / 'run/checkpoints'} (")


def test_a_tilde_behind_an_equal_sign_is_the_home_as_it_is_for_a_shell(monkeypatch, tmp_path):
    given = []
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["train", "--run-dir=~/run", "--columns", "a=~/b", "--x=~y"])
    guarded(lambda line: given.extend(line))
    assert given == [f"--run-dir={tmp_path}/run", "--columns", "a=~/b", "--x=~y"]


def test_what_was_noted_of_an_error_is_said_behind_it(monkeypatch):
    def fail(line):
        error = UnicodeEncodeError("ascii", "é", 0, 1, "no such letter")
        error.add_note("step 3 was not taken")
        raise error

    monkeypatch.setattr(sys, "argv", ["train"])
    with pytest.raises(SystemExit, match=r"^error: .*no such letter\nstep 3 was not taken$"):
        guarded(fail)
