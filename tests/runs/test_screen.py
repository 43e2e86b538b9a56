"""What a run says before its first step and leaves beside its weights; where its curves go."""

import importlib.util
import io
import itertools
import json
import re
import sys
from types import SimpleNamespace

import pytest
import training_runs
from rich.console import Console

from docs.settings_page import PAGE, settings_page
from experiments import quickstart
from rlvr_jax import methods, tasks
from rlvr_jax.console import RunProgress, described, progress_bar
from rlvr_jax.runs import TrainConfig, check_config, parse_config, preset, train
from rlvr_jax.runs.config import GROUPS, SETTINGS
from rlvr_jax.runs.resolved import resolve
from rlvr_jax.runs.run import make_run
from rlvr_jax.runs.screen import differences, run_lines
from rlvr_jax.tasks.presets import _TASKS

REPLY_LOG: list = []


def keep(metrics, step):
    REPLY_LOG.append((step, metrics))


def fail(metrics, step):
    raise ConnectionError(f"no server at step {step}")


def screen_of(config, watch=None):
    """What a run prints."""
    shown = io.StringIO()
    train(config, Console(file=shown, width=100), watch)
    return shown.getvalue()


@pytest.fixture(scope="module")
def finished(model, tmp_path_factory):
    """A run whose numbers went to a function; its directory and its screen."""
    REPLY_LOG.clear()
    run_dir = tmp_path_factory.mktemp("screen") / "run"
    config = training_runs.settings(
        model,
        run_dir,
        method="clip_cov",
        hyperparameters=("fraction=0.25",),
        log_to=(f"{__name__}:keep",),
    )
    return run_dir, screen_of(config)


@pytest.mark.thorough
def test_who_trains_what_is_said_in_six_lines(finished, model):
    run_dir, shown = finished
    lines = shown.splitlines()
    assert lines[0] == f"clip_cov on training_runs:sums, seed 0, 3 steps → {run_dir}"
    heads = [line.split()[0] for line in lines[:6]]
    assert heads == ["clip_cov", "policy", "data", "step", "loss", "method"]
    assert str(model) in lines[1] and "all weights" in lines[1] and "KiB" in lines[1]
    assert "15 prompts, 4 of 5 held out × 4 samples" in lines[2]
    assert "known answers earn 1.00" in lines[2] and "none earn 0.00" in lines[2]
    assert re.search(r"first prompt, 4 tokens: \d│ \+│ \d│ =", lines[2])
    assert "4 prompts × 4 samples" in lines[3]
    assert lines[3].endswith(
        "1 update at 0.01, without warm-up, Adam decays 0.9 and 0.95; evaluated every 2 steps"
    )
    assert "drop_high_covariance" in lines[4]
    assert lines[5] == "method  fraction=0.25 (published: 0.0002); every setting is in config.json"
    assert "adam_b1" not in shown


@pytest.mark.parametrize(
    ("warmup", "steps", "minibatches", "wanted"),
    [
        (5, 2, 1, "over 5 updates and the run has 2, so it never reaches 0.01; --warmup-updates"),
        (5, 2, 2, "over 5 updates and the run has 4, so it never reaches 0.01; --warmup-updates"),
        (4, 2, 2, ""),
        (2, 2, 1, ""),
        (0, 1, 1, ""),
    ],
)
def test_a_warmup_that_the_run_does_not_leave_is_noted(model, warmup, steps, minibatches, wanted):
    run = training_runs.prepared(
        training_runs.settings(
            model, "unused", warmup_updates=warmup, steps=steps, minibatches=minibatches
        )
    )
    told = [sentence for sentence in run.remarks() if sentence.startswith("--warmup-updates")]
    assert len(told) == bool(wanted) and all(wanted in sentence for sentence in told)


@pytest.mark.thorough
def test_defaults_of_a_method_of_ones_own_are_not_called_published(model, tmp_path):
    config = training_runs.settings(
        model,
        tmp_path / "run",
        steps=1,
        evaluate_every=1,
        warmup_updates=3,
        method="methods_of_tests:rate_plainly",
        hyperparameters=("tolerance=0.3",),
    )
    shown = screen_of(config)
    assert "method  tolerance=0.3 (default: 0.2); every setting is in config.json" in shown
    assert "after a warm-up of 3 updates, Adam decays 0.9 and 0.95; evaluated every step" in shown
    assert "published" not in shown


@pytest.mark.parametrize("steps", [2, 3])
def test_a_resumed_run_says_behind_which_step_it_goes_on(model, tmp_path, steps):
    config = training_runs.settings(model, tmp_path / "run", steps=1, evaluate_every=1)
    assert "continues" not in screen_of(config)
    again = config.replace(steps=steps, resume=True)
    assert f"grpo seed 0: continues after step 1, of {steps}\n" in screen_of(again)


def test_the_six_lines_fit_a_terminal(model, tmp_path):
    config = training_runs.settings(model, tmp_path / "run", steps=1)
    shown = io.StringIO()
    train(config, Console(file=shown, width=80, force_terminal=True, color_system=None))
    lines = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", shown.getvalue()).splitlines()
    heads = [number for number, line in enumerate(lines) if re.match(r"(policy|data|loss) ", line)]
    assert len(heads) == 3
    told = lines[: heads[2] + 1]
    assert max(map(len, told)) <= 80 and len(told) > 6
    own = {number for number, line in enumerate(told) if not line.startswith(" " * 8)}
    assert len(own) == 5 and told[0].startswith("grpo on training_runs:sums, seed 0, 1 step →")


def test_every_setting_is_shown_if_wanted(model, tmp_path):
    config = training_runs.settings(model, tmp_path / "run", steps=1, verbose=True)
    shown = screen_of(config)
    assert re.search(r"^adam_b1 +0\.9 *$", shown, re.MULTILINE) and "Self-check of task" in shown


def test_a_run_beside_others_says_only_what_is_to_be_looked_at(model, tmp_path):
    config = training_runs.settings(model, tmp_path / "run", steps=1, lora_alpha=8.0)
    shown = screen_of(config, lambda *begin: lambda *step: None)
    lines = shown.splitlines()
    assert any(
        line.startswith("note: grpo seed 0: --lora-alpha: --lora-rank is 0") for line in lines
    )
    assert "policy  " not in shown and "self-check" not in shown


def test_hyperparameters_that_are_not_the_method_s_own_are_named():
    config = preset("brackets", "grpo")
    given = {name: value for name, value in (p.split("=") for p in config.hyperparameters)}
    assert given == {"kl_coefficient": "0", "aggregation": "token_mean"}
    card = {
        "method": "grpo",
        "hyperparameters": {
            "clip_high": 0.2,
            "kl_coefficient": 0.0,
            "aggregation": "token_mean()",
        },
    }
    assert differences(card) == {
        "kl_coefficient": (0.0, 0.04),
        "aggregation": ("token_mean()", "rollout_mean_token_mean()"),
    }


@pytest.mark.thorough
def test_a_function_of_ones_own_gets_the_numbers_of_the_file(finished):
    rows = training_runs.metrics(finished[0])
    assert [step for step, _ in REPLY_LOG] == [row.pop("step") for row in rows]
    for (_, told), row in zip(REPLY_LOG, rows, strict=True):
        assert told == {name: value for name, value in row.items() if value is not None}


def test_a_tracker_that_fails_is_left_and_the_run_goes_on(model, tmp_path):
    config = training_runs.settings(
        model, tmp_path / "run", steps=1, log_to=(f"{__name__}:fail", f"{__name__}:keep")
    )
    REPLY_LOG.clear()
    with pytest.warns(UserWarning, match="a tracker failed and is dropped: no server at step 0"):
        training_runs.quietly(config)
    assert [step for step, _ in REPLY_LOG] == [0, 1]


@pytest.mark.parametrize("package", ["wandb", "trackio"])
def test_a_tracker_gets_settings_and_numbers(model, tmp_path, monkeypatch, package):
    """The calls that their documentations show, of a package that is not here."""
    calls = []
    run = SimpleNamespace(
        log=lambda metrics, step: calls.append((step, metrics)),
        finish=lambda: calls.append("finished"),
    )

    def init(**options):
        calls.append(options)
        return run

    module = SimpleNamespace(init=init, __spec__=SimpleNamespace())
    monkeypatch.setitem(sys.modules, package, module)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: module.__spec__)
    config = training_runs.settings(model, tmp_path / "run", steps=1, log_to=(package,))
    training_runs.quietly(config)
    begin, *told, end = calls
    assert begin["project"] == "rlvr_jax" and begin["name"].endswith("-run")
    assert begin["config"]["learning_rate"] == 1e-2
    assert [step for step, _ in told] == [0, 1] and end == "finished"
    assert told[1][1]["reward"] == training_runs.metrics(tmp_path / "run")[1]["reward"]


def test_a_tracker_that_cannot_begin_is_told_and_the_run_begins_later(model, tmp_path, monkeypatch):
    def init(**options):
        raise RuntimeError("No API key configured")

    module = SimpleNamespace(init=init, __spec__=SimpleNamespace())
    monkeypatch.setitem(sys.modules, "wandb", module)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: module.__spec__)
    config = training_runs.settings(model, tmp_path / "run", steps=1, log_to=("wandb",))
    wanted = "--log-to wandb must start a run, got RuntimeError: No API key .* WANDB_MODE=offline"
    with pytest.raises(ValueError, match=wanted):
        training_runs.quietly(config)
    training_runs.quietly(config.replace(log_to=(), resume=True))
    assert [row["step"] for row in training_runs.metrics(tmp_path / "run")] == [0, 1]


def test_a_tracker_that_is_not_there_is_named_with_its_command(model, tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for names, message in {
        ("wandb",): "--log-to wandb needs the package wandb, which is not installed: run `pip inst",
        ("tensorbored",): r"log-to must be among trackio, wandb, or a custom .*'tensorb",
        ("no_module:f",): "--log-to: no module 'no_module' can be imported, got 'no_module:f'",
    }.items():
        with pytest.raises(ValueError, match=message):
            check_config(parse_config(["--task", "training_runs:sums", "--log-to", *names]))


def test_trackers_decide_nothing_that_a_run_gives(finished, model):
    config = training_runs.settings(
        model,
        finished[0],
        method="clip_cov",
        hyperparameters=("fraction=0.25",),
        steps=4,
        resume=True,
        verbose=True,
    )
    training_runs.quietly(config)
    assert [row["step"] for row in training_runs.metrics(finished[0])] == [0, 1, 2, 3, 4]


def test_a_policy_has_a_card(finished):
    page = (finished[0] / "policy/README.md").read_text()
    assert page.startswith("---\nlibrary_name: transformers\n")
    assert "trained by clip_cov on training_runs:sums" in page
    assert "[The Entropy Mechanism" in page and "`fraction=0.25`" in page
    summary = json.loads((finished[0] / "summary.json").read_text())
    row = re.search(r"^\| pass@1 \| (\S+) \| (\S+) \|$", page, re.MULTILINE)
    assert row.groups() == tuple(
        f"{summary[f'held_out_pass_at_1_{at}']:.3f}" for at in ("start", "end")
    )
    # Equal runs leave equal bytes.
    assert str(finished[0]) not in page


def test_the_help_has_every_setting_by_group(capsys):
    for option in ("--help", "-h"):
        with pytest.raises(SystemExit) as ended:
            parse_config(["--task", "brackets", "--method", "clip_cov", option])
        assert ended.value.code == 0
        shown = capsys.readouterr().out
        # Of the preset of what was named, and switches as what they do.
        assert "fraction=0.0075" in shown and "--no-chat-template" in shown
        assert " --learning-rate " in shown and "0.0003" in shown and "--config FILE" in shown
        assert all(f" --{name.replace('_', '-')}" in shown for name in SETTINGS)
        assert all(f" {group} options " in shown for group in GROUPS)


def test_the_page_of_settings_is_that_of_the_dataclasses():
    assert PAGE.read_text() == settings_page(), "run `python docs/settings_page.py`"
    rows = re.findall(r"^\| `--([\w-]+)` \|", PAGE.read_text(), re.MULTILINE)
    assert sorted(rows) == sorted(
        "no-preset" if name == "preset" else name.replace("_", "-") for name in SETTINGS
    )


def test_what_a_program_says_of_itself_fits_and_commands_keep_their_lines():
    lines = described(quickstart.__doc__, 60).splitlines()
    told = [line for line in lines if not line.startswith("  ")]
    assert 50 < max(map(len, told)) <= 60 and all(line[:1] in ("", " ") for line in lines)
    (command,) = [line for line in lines if "python -m" in line and line.startswith("  ")]
    assert command.strip() == "python -m rlvr_jax quickstart"
    assert " ".join(quickstart.__doc__.split()) == " ".join(" ".join(lines).split())


@pytest.mark.parametrize("width", [80, 100, 140])
def test_each_run_has_one_line_that_fits(width):
    shown = io.StringIO()
    console = Console(file=shown, width=width, force_terminal=True)
    metrics = {"reward": 0.5, "entropy": 0.25, "truncated_fraction": 0.0}
    with progress_bar(console) as bar:
        for method in ("grpo", "clip_cov"):
            line = RunProgress(console, bar, f"{method} seed 0", 300, 0)
            line(0, {"held_out/pass@1": 0.251, "held_out/n": 64.0, "truncated_fraction": 0.0}, {})
            line(120, metrics, {"tokens_per_s": 12345.0})
        sampled = console.render_lines(bar.get_renderable(), pad=False)
    texts = ["".join(segment.text for segment in line) for line in sampled]
    assert len(texts) == 2
    assert all("pass@1 0.251" in text and "120/300" in text for text in texts)


@pytest.mark.parametrize("left_out", [{}, {"experience/rows_without_reward": 12.0}])
def test_a_judge_without_verdicts_is_said_once(left_out):
    shown = io.StringIO()
    console = Console(file=shown, width=300)
    known = {"reward": float("nan"), "entropy": float("nan"), "truncated_fraction": 0.0}
    counts = {"asked": 16, "no_verdict": 12, "unreadable": 3, "failed/no room": 9, "calls": 16}
    known |= {f"experience/judge_{name}": float(count) for name, count in counts.items()}
    with progress_bar(console) as bar:
        line = RunProgress(console, bar, "rlbff seed 0", 300, 0)
        for step in (1, 2):
            line(step, known | left_out, {"tokens_per_s": 12345.0})
    text = shown.getvalue()
    said = "the judge left 75% of the responses ungraded (no room: 9, unreadable: 3)"
    assert text.count(said) == 1 and "reward –  entropy –" in text
    assert ("which are not in the loss" in text) == bool(left_out)


@pytest.mark.parametrize("norms, told", [((0, 0, 0, 0), 1), ((0, 0, 1, 0, 0, 0), 0)])
def test_first_steps_without_a_gradient_are_said(norms, told):
    shown = io.StringIO()
    console = Console(file=shown, width=300)
    with progress_bar(console) as bar:
        line = RunProgress(console, bar, "rlpr seed 0", 300, 0)
        line(0, {"held_out/pass@1": 0.251, "held_out/n": 64.0}, {})
        for step, norm in enumerate(norms, 1):
            known = {
                "reward": 0.5,
                "entropy": 0.25,
                "truncated_fraction": 0.0,
                "gradient_norm": norm,
            }
            line(step, known, {"tokens_per_s": 12345.0})
    said = "3 steps in a row had no gradient (mean reward 0.500)"
    assert shown.getvalue().count(said) == told


@pytest.mark.parametrize("counts, shown", [((0, 0, 0, 0), 1), ((0, 0.1, 0, 0), 0), ((), 1)])
def test_a_mechanism_that_has_not_acted_is_reported_once(counts, shown):
    page = io.StringIO()
    console = Console(file=page, width=300)
    with progress_bar(console) as bar:
        line = RunProgress(console, bar, "scope seed 0", 40, 0, "experience/salvaged_rows")
        for step in range(6):
            known = {"reward": 0.5, "entropy": 0.25, "truncated_fraction": 0.0}
            if step < len(counts):
                known["experience/salvaged_rows"] = counts[step]
            line(step, known, {"tokens_per_s": 12345.0})
    text = "the mechanism of scope has not acted: experience/salvaged_rows was 0 in 4 steps"
    assert page.getvalue().count(text) == shown


def test_the_quickstart_begins_with_six_lines_and_ends_with_three_commands(tmp_path):
    config = quickstart.Config(run_dir=tmp_path, steps=600)
    runs = {method: preset("brackets", method) for method in quickstart.METHODS}
    begin = quickstart._begin(config, runs)
    assert len(begin) == 6 and all(len(line) < 120 for line in begin[:3])
    assert "fraction=0.0075" in begin[3] and "minutes" in begin[5]
    commands = quickstart._next(tmp_path)
    assert len(commands) == 3
    for command in commands:
        assert command.startswith("python -m experiments.")


@pytest.mark.thorough
def test_what_a_preset_sets_is_printed(tmp_path):
    """All settings of presets that may change a result, each against its default."""
    cards = [methods.method(name).presets.values() for name in methods.names()]
    tables = [*_TASKS.values(), *itertools.chain.from_iterable(cards)]
    every = {name: value for table in tables for name, value in table.items()}
    every |= {"minibatches": 2, "hyperparameters": ("clip_low=0.1",)}  # of several methods
    plain = TrainConfig().flat
    names = {name for name, value in every.items() if value != plain[name]}
    names -= {"micro_batches"}  # which decides memory and time

    task = tasks.load("brackets:train=64")
    check = tasks.self_check(task)

    def lines(**changes):
        config = preset(task.name, "grpo").replace(**{**every, **changes}, run_dir=tmp_path)
        found = resolve(config, task)
        return run_lines(make_run(found), found.card(), check)

    usual = lines()
    assert {name for name in names if lines(**{name: plain[name]}) != usual} == names
