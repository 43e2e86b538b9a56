"""Each shown setting: the mechanism of the method acts in it, and not in the run without it."""

import contextlib
import functools
import io
import shlex
import tempfile
from pathlib import Path

import pytest
import training_runs
from everyday import everyday

from docs.method_pages import method_page
from rlvr_jax import methods, policy
from rlvr_jax.experiments import train
from rlvr_jax.methods.__main__ import card, shown_command
from rlvr_jax.types import Shown, replace

# One of each theme, those with short runs.
EVERY_CHECK = (
    *("absolute_zero", "cispo", "clip_cov", "deepsearch", "dr_grpo", "drive", "grpo_roc"),
    *("length_rewards", "oblr_po", "opd", "passk_advantage", "prefix_rl", "rollout_correction"),
    "rubric_rewards",
)


FEWEST = "--evaluation-prompts 4 --evaluation-samples 2 --samples-stored 0"
"""Added to a command, together with a few steps; the last value of a flag counts."""


def printed_commands(name):
    """The commands of the method's page: with the mechanism, and without it."""
    lines = method_page(name).splitlines()
    prefix = "    python -m rlvr_jax train "
    return [line.removeprefix(prefix) for line in lines if line.startswith(prefix)]


@functools.cache
def counts(words, acts, steps):
    """The metric `acts` of the first steps of a command; it is 0 where a step has none."""
    with tempfile.TemporaryDirectory() as folder:
        few = f"--steps {steps} --evaluate-every {steps} {FEWEST} --run-dir {folder}/run"
        with contextlib.redirect_stdout(io.StringIO()):
            train.main([*shlex.split(words), *few.split()])
        lines = training_runs.metrics(Path(folder) / "run")[1:]
    assert len(lines) == steps
    return [line.get(acts, 0.0) for line in lines]


@pytest.mark.parametrize("name", everyday(methods.names(), *EVERY_CHECK, first=()))
def test_the_mechanism_acts_in_its_shown_setting_only(name):
    shown = methods.method(name).shown
    if shown.settings.get("model") == policy.SHIPPED:
        try:
            policy.shipped_weights()
        except ValueError as error:
            pytest.skip(str(error))
    # Many methods have one run without their mechanism, in folders of their own.
    acts, *without = (
        sum(counts(words.rpartition(" --run-dir ")[0], shown.acts, shown.within))
        for words in printed_commands(name)
    )
    assert acts > 0
    assert without == ([] if shown.without is None else [0])


def test_every_check_shows_a_method_of_each_theme():
    assert {methods.themes()[name] for name in EVERY_CHECK} == {*methods.themes().values()}


def test_a_command_has_all_settings_and_the_run_without_lacks_the_mechanism():
    shown = Shown(
        "sums",
        "kept",
        without={"fraction": 1},
        hyperparameters={"fraction": 0.1, "epsilon": 0.3},
        settings={"samples_per_prompt": 4, "mask_truncated": False},
        steps=9,
    )
    settings = "--task sums --steps 9 --samples-per-prompt 4 --no-mask-truncated --hyperparameters"
    own = shown.command("mine")
    assert own == ["train", "--method", "mine", *settings.split(), "fraction=0.1", "epsilon=0.3"]
    without = shown.command("mine", acts=False)
    assert without == ["train", "--method", "mine", *settings.split(), "fraction=1", "epsilon=0.3"]
    other = replace(shown, without="grpo").command("mine", acts=False)
    assert other == ["train", "--method", "grpo", *settings.split()[:-1]]
    with pytest.raises(ValueError, match=r"mine: a plain algorithm has no run without"):
        replace(shown, without=None).command("mine", acts=False)


def test_a_card_without_a_shown_setting_has_no_command(monkeypatch):
    monkeypatch.setattr(
        "rlvr_jax.methods.__main__.method", lambda name: replace(methods.method(name), shown=None)
    )
    assert "shown by" not in card("clip_cov")
    with pytest.raises(ValueError, match="clip_cov: the card must have a shown setting"):
        shown_command("clip_cov")


def test_the_command_of_a_method_is_printed():
    command = "python -m rlvr_jax train --method clip_cov --task brackets --steps 300"
    assert f"  {command} --run-dir runs/clip_cov" in card("clip_cov").splitlines()
    without = command.replace("clip_cov", "grpo")
    assert shown_command("clip_cov", acts=False) == f"{without} --run-dir runs/clip_cov_without"
