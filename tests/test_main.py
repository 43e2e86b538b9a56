"""`python -m rlvr_jax`: what there is, and the commands."""

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from experiments import sample
from rlvr_jax import __main__ as command, methods, policy, tasks
from rlvr_jax.methods import __main__ as page_of_methods

ROOT = Path(__file__).parents[1]


def test_the_page_names_every_command_method_and_task(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["rlvr_jax"])
    command.main()
    page = capsys.readouterr().out
    words = set(re.findall(r"[\w.]+", page))
    assert {*methods.names(), *tasks.names(), *command.COMMANDS, *command.MODULES} <= words
    assert str(ROOT / "docs") in page
    assert max(map(len, page.splitlines())) <= 120


@pytest.mark.parametrize("name", command.COMMANDS)
def test_a_command_is_the_experiment_of_that_name(name, monkeypatch):
    assert (ROOT / "experiments" / f"{name}.py").is_file()
    assert (ROOT / "rlvr_jax/experiments").readlink() == Path("../experiments")
    calls = []
    monkeypatch.setattr(os, "execv", lambda *call: calls.append(call))
    monkeypatch.setattr(sys, "argv", ["rlvr_jax", name, "--steps", "3"])
    command.main()
    line = [sys.executable, "-m", f"rlvr_jax.experiments.{name}", "--steps", "3"]
    assert calls == [(sys.executable, line)]


def test_another_name_is_refused(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["rlvr_jax", "tarin"])
    with pytest.raises(SystemExit, match="error: the command must be one of quickstart, train"):
        command.main()


@pytest.mark.thorough
@pytest.mark.parametrize("line", ["rlvr_jax", "rlvr_jax.methods", "experiments.sample --help"])
def test_a_command_whose_reader_leaves_ends_without_a_word(line):
    asked = f"{sys.executable} -m {line} | head -c 5"
    done = subprocess.run(
        ["bash", "-c", f"{asked}; echo; echo ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    first, code = done.stdout.splitlines()
    assert len(first) == 5 and code in ("141", "0") and done.stderr == ""


@pytest.mark.thorough
def test_the_usage_is_the_command_that_was_typed():
    line = [sys.executable, "-m", "rlvr_jax", "sample", "--help"]
    done = subprocess.run(line, capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.startswith("usage: python -m rlvr_jax sample [-h]")


@pytest.mark.parametrize("width", [80, 100])
def test_the_table_of_methods_fits_a_terminal(width):
    lines = page_of_methods.table(methods.names(), width).splitlines()
    assert max(map(len, lines)) == width
    rows = [line.split()[0] for line in lines if line]
    assert sorted(rows) == sorted([*methods.names(), *{*methods.themes().values()}])
    # Where it goes to a file, nothing is cut.
    whole = page_of_methods.table(methods.names())
    assert page_of_methods.first("clip_cov").partition(": ")[2] in whole


def test_the_table_of_methods_can_be_filtered():
    chosen = page_of_methods.selected(theme="entropy", changes="weight")
    assert "clip_cov" in chosen and "kl_cov" not in chosen
    assert all(methods.themes()[name] == "entropy" for name in chosen)
    assert page_of_methods.selected(search="PASS@K") == ["passk_advantage", "simko"]
    assert page_of_methods.selected() == methods.names()
    with pytest.raises(ValueError, match=r"--theme must be one of agents, .*; closest: entropy"):
        page_of_methods.selected(theme="entropi")
    with pytest.raises(ValueError, match=r"--changes must be one of .*got surogate; closest: surr"):
        page_of_methods.selected(changes="surogate")


def shown(monkeypatch, *line, typed=(), model=None):
    """What the sampling command prints, and the same with its colours."""
    out, lines = io.StringIO(), iter(typed)
    console = Console(file=out, width=400, force_terminal=True, color_system="truecolor")

    def typing(prompt):
        del prompt
        try:
            return next(lines)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr(console, "input", typing)
    monkeypatch.setattr(sample, "Console", lambda: console)
    sample.main(["--model", str(model or tasks.load("brackets").base_model), *line])
    coloured = out.getvalue()
    return re.sub(r"\x1b\[[\d;]*m", "", coloured), coloured


@pytest.mark.thorough
def test_answers_are_printed_in_the_colours_of_their_entropy(monkeypatch):
    prompt = tasks.load("brackets").test[0].text
    plain, coloured = shown(monkeypatch, "--prompt", prompt, "--samples", "3", "--tokens", "24")
    first, *answers = plain.splitlines()
    assert first == prompt and len(answers) == 3
    for answer in answers:
        assert re.search(r"\[\d+ tokens(, cut)?, entropy \d\.\d{3} nats\]$", answer)
    # Several colours, from cold to warm.
    assert len(set(re.findall(r"38;2;\d+;\d+;\d+", coloured))) > 2
    again, _ = shown(monkeypatch, "--prompt", prompt, "--samples", "3", "--tokens", "24")
    assert again == plain
    cold = "#{:02x}{:02x}{:02x}".format(*sample.COLD)
    warm = "#{:02x}{:02x}{:02x}".format(*sample.WARM)
    assert sample._colour(0.0) == cold and sample._colour(np.inf) == warm


def test_prompts_of_a_task_are_graded(monkeypatch):
    plain, _ = shown(monkeypatch, "--task", "brackets", "--prompts", "2", "--tokens", "24")
    assert len(re.findall(r"^graded [01]\.0$", plain, re.MULTILINE)) == 2


@pytest.mark.thorough
def test_a_talk_ends_with_its_input(monkeypatch):
    # Without a template there is no way to say what was said before.
    plain, _ = shown(monkeypatch, "--tokens", "8", typed=["1 + 1 = 2", "", "2 + 2 = 4", "3"])
    assert plain.startswith(
        "each line is a separate prompt, as the tokenizer has no chat template; Ctrl-D"
    )
    assert len(re.findall(r"nats\]$", plain, re.MULTILINE)) == 3


@pytest.mark.thorough
def test_a_line_that_cannot_be_asked_ends_no_talk(monkeypatch, tmp_path):
    base = tasks.load("brackets").base_model
    tokenizer = policy.tokenizer(base)
    tokenizer.chat_template = "{% for m in messages %}{{ m.content }} {% endfor %}"
    policy.save(tmp_path, *policy.load(base), tokenizer)
    special = tokenizer.all_special_tokens[0]
    lines = ["1 + 1 = 2", special, "2 + 2 = 4", "1 + 3 = 4"]
    plain, _ = shown(monkeypatch, "--tokens", "4", typed=lines, model=tmp_path)
    assert plain.startswith("each line continues the conversation")
    assert "error: prompts must have no special token" in plain
    assert len(re.findall(r"nats\]$", plain, re.MULTILINE)) == 3


def test_a_prompt_and_a_task_are_one_too_many(monkeypatch):
    with pytest.raises(ValueError, match="--prompt must be empty with --task, got '1'"):
        shown(monkeypatch, "--task", "brackets", "--prompt", "1")
