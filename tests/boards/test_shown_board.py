"""The board of shown settings: which runs are made, and what its page says of them."""

import json

import numpy as np
import pytest

from experiments import shown
from rlvr_jax import methods
from rlvr_jax.analysis.evidence.rows import read_rows
from rlvr_jax.experiments.boards.shown_page import Pair, pair_of, write_page
from rlvr_jax.runs import RunsFailed

NAMES = ["drive", "skill0"]


def write_run(config, pass_1):
    """Writes the files of a finished run that the board reads."""
    (config.run_dir / "checkpoints").mkdir(parents=True)
    card = {
        "method": config.method,
        "seed": config.seed,
        "settings": config.to_json(),
        "versions": {"jax": "1"},
    }
    (config.run_dir / "config.json").write_text(json.dumps(card))
    held_out = {"held_out/n": 4, "held_out/pass@1": pass_1, "held_out/pass@8": 0.9}
    held_out |= {"held_out/entropy": 0.2}
    first = {"step": 0, **held_out}
    last = {"step": 1, "entropy": 0.1, "sampled_tokens": 70.0, **held_out}
    if "without" not in config.run_dir.parts:
        last[methods.method(config.method).shown.acts] = 3.0
    text = "".join(json.dumps(row) + "\n" for row in (first, last))
    (config.run_dir / "metrics.jsonl").write_text(text)


@pytest.fixture
def begun(monkeypatch):
    """Stands for the runs: `drive` helps, `skill0` makes no difference. One run fails."""
    begun = []

    def train_together(configs, console, jobs, ended):
        for config in configs:
            begun.append(config)
            name, kind = config.run_dir.parts[-3:-1]
            if (name, kind, config.seed) == ("skill0", "without", 1):
                error = FloatingPointError("step 3: loss is nan")
                ended(config, error)
                raise RunsFailed({config.run_dir: error})
            write_run(config, 0.5 + 0.01 * config.seed + 0.2 * ((name, kind) == ("drive", "with")))
            ended(config, {})

    monkeypatch.setattr(shown, "commit_of", lambda folder: "c0ffee")
    monkeypatch.setattr(shown, "check_together", lambda configs: None)
    monkeypatch.setattr(shown, "train_together", train_together)
    return begun


def test_both_runs_of_each_seed_are_made_and_a_third_seed_where_they_differ(tmp_path, begun):
    place = ["--methods", *NAMES, "--out", str(tmp_path / "out"), "--run-dir", str(tmp_path / "r")]
    shown.main(place)
    rows = read_rows(tmp_path / "out" / "results.jsonl")
    keys = [(row["entry"], row["seed"]) for row in rows]
    both = ["drive", "skill0", "drive:without", "skill0:without"]
    expected = [(entry, seed) for seed in (0, 1) for entry in both]
    assert keys == [*expected, ("drive", 2), ("drive:without", 2)]
    assert [row["entry"] for row in rows if "failed" in row] == ["skill0:without"]
    assert [row["counter"] for row in rows[:3]] == [3, 3, 0]
    # Without the mechanism: as many tokens as with it, in more steps if it takes more.
    with_it, without = begun[0], begun[2]
    assert with_it.sampled_tokens == 0
    assert without.sampled_tokens == 70
    assert without.steps == 4 * with_it.steps == without.evaluation.evaluate_every
    before = (tmp_path / "out" / "results.jsonl").read_text()
    begun.clear()
    shown.main(place)
    assert not begun
    assert (tmp_path / "out" / "results.jsonl").read_text() == before

    shown.main([*place, "--page"])
    page = (tmp_path / "out" / "README.md").read_text()
    assert "2 methods: 1 helps, 1 one seed." in page
    line = "| `drive` | `brackets` | helps | `"
    assert line in page
    assert "0.710, 0.510 | 0.900, 0.900 | 0.200, 0.200 | 3 |" in page
    assert "- `skill0:without`, seed 1: step 3: loss is nan" in page


def runs(numbers, counter=1.0):
    rows = zip(*numbers, strict=True)
    return [{"end": {"pass@1": a, "pass@8": b}, "counter": counter} for a, b in rows]


@pytest.mark.parametrize(
    ("own", "verdict"),
    [
        (([0.7, 0.72], [0.9, 0.9]), "helps"),
        (([0.5, 0.6], [0.9, 0.9]), "no difference"),
        (([0.4, 0.42], [0.9, 0.9]), "hurts"),
        # One number rises, the other falls.
        (([0.7, 0.72], [0.8, 0.8]), "no difference"),
        (([0.7], [0.9]), "one seed"),
    ],
)
def test_a_number_counts_if_it_differs_by_more_than_the_seeds_do(own, verdict):
    without = runs(([0.5, 0.52][: len(own[0])], [0.9, 0.9][: len(own[0])]), 0.0)
    assert Pair(runs(own), without).verdict == verdict
    assert Pair(runs(own, 0.0), without).verdict == "does not act"


def test_runs_without_their_pair_are_no_result(tmp_path):
    alone = {"entry": "drive", "seed": 0, "end": {}}
    assert not pair_of([alone], "drive").own
    with pytest.raises(ValueError, match=r"must have runs of a method with and without, got none"):
        write_page(tmp_path, [alone])


def test_methods_of_the_board_of_objectives_are_left_out():
    names = shown.compared()
    assert "skill0" in names
    assert not {"clip_cov", "grpo"} & {*names}
    assert np.all([methods.method(name).shown.without is not None for name in names])
    with pytest.raises(
        ValueError, match=r"must have a shown setting with a run without .*, got grpo"
    ):
        shown.main(["--methods", "grpo"])
