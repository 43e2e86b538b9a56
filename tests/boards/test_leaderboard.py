"""The leaderboard's command: what it runs, what it writes down, what a check compares."""

import dataclasses
import json
import random
import re

import pytest

from experiments import leaderboard
from rlvr_jax import methods
from rlvr_jax.analysis.evidence.ranking import chosen_entries
from rlvr_jax.analysis.evidence.rows import append_row, read_rows
from rlvr_jax.experiments.boards.definitions import BOARDS, Board
from rlvr_jax.methods.arguments import parse_hyperparameters
from rlvr_jax.runs import RunsFailed
from rlvr_jax.runs.hyperparameters import method_arguments
from rlvr_jax.training.update import check_needs

ENTRIES = {"grpo": "grpo", "few": "clip_cov:fraction=0.01"}
NOTES = {"few": "mind this", "gone": "has no run"}
BOARD = Board(
    "Two of them", "Which?", "brackets", ENTRIES, seeds=2, sampled_tokens=1000, notes=NOTES
)


@pytest.fixture(autouse=True)
def board(monkeypatch):
    monkeypatch.setitem(BOARDS, "two", BOARD)
    monkeypatch.setattr(leaderboard, "commit_of", lambda folder: "c0ffee")
    monkeypatch.setattr(leaderboard, "check_together", lambda configs: None)


def write_run(config, value):
    """What a run of these settings leaves behind, as far as it is read."""
    (config.run_dir / "checkpoints").mkdir(parents=True)
    card = {
        "method": config.method,
        "seed": config.seed,
        "settings": config.to_json(),
        "versions": {"jax": "1"},
    }
    (config.run_dir / "config.json").write_text(json.dumps(card))
    held_out = {"held_out/n": 4, "held_out/pass@1": value / 2, "held_out/pass@32": value}
    held_out |= {"held_out/entropy": 0.2, "held_out/hard/info/right_form": value / 4}
    rows = [{"step": 0, **held_out}, {"step": 1, "entropy": 0.1, "sampled_tokens": 9.0, **held_out}]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (config.run_dir / "metrics.jsonl").write_text(text)


def runs_all_but(failing):
    """Stands for `train_together`: seed 1 of one method fails."""

    def train_together(configs, console, jobs, ended):
        failures = {}
        for config in configs:
            if (config.method, config.seed) == failing:
                failures[config.run_dir] = FloatingPointError("step 3: loss is nan")
                ended(config, failures[config.run_dir])
            else:
                write_run(config, 0.5 + 0.1 * config.seed + 0.2 * (config.method == "clip_cov"))
                ended(config, {})
        if failures:
            raise RunsFailed(failures)

    return train_together


def test_what_is_missing_is_run_and_written_down(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(leaderboard, "train_together", runs_all_but(("clip_cov", 1)))
    place = ["--board", "two", "--out", str(tmp_path / "out"), "--run-dir", str(tmp_path / "runs")]
    leaderboard.main(place)
    rows = read_rows(tmp_path / "out" / "results.jsonl")
    assert [(row["entry"], row["seed"], "end" in row) for row in rows] == [
        ("grpo", 0, True),
        ("few", 0, True),
        ("grpo", 1, True),
        ("few", 1, False),
    ]
    assert rows[3]["failed"] == "step 3: loss is nan"
    assert all(row["settings"]["sampled_tokens"] == 1000 for row in rows)
    assert len(read_rows(tmp_path / "out" / "curves.jsonl")) == 3
    assert "4 of 4 runs are missing; commit c0ffee" in capsys.readouterr().out
    assert len(list((tmp_path / "runs").rglob("config.json"))) == 3
    assert not list((tmp_path / "runs").rglob("checkpoints"))
    # What stands is not run again, what failed neither; another method joins.
    monkeypatch.setattr(leaderboard, "train_together", runs_all_but(None))
    leaderboard.main([*place, "--entries", "grpo", "rloo"])
    joined = read_rows(tmp_path / "out" / "results.jsonl")[4:]
    assert [(row["entry"], row["seed"]) for row in joined] == [("rloo", 0), ("rloo", 1)]


def test_the_pages_tell_what_survives(tmp_path, monkeypatch):
    monkeypatch.setattr(leaderboard, "train_together", runs_all_but(("clip_cov", 1)))
    place = ["--board", "two", "--out", str(tmp_path / "out"), "--run-dir", str(tmp_path / "runs")]
    leaderboard.main(place)
    leaderboard.main([*place, "--page"])
    page = (tmp_path / "out" / "two.md").read_text()
    # One pair is no interval, so nothing is said of it.
    assert "Above `grpo` on pass@32 after Holm's correction: none." in page
    assert "- Fewer than 2 pairs to compare: `few`." in page and "distinguishable" not in page
    assert "- `few`, seed 1: step 3: loss is nan" in page
    line = next(line for line in page.splitlines() if line.startswith("| `few"))
    assert line.split(" | ")[1:6] == ["–", "1", "0.350", "0.700", "+0.200"]
    assert "- `few`: mind this" in page and "`gone`" not in page
    assert (tmp_path / "out" / "two.png").stat().st_size > 1000
    assert (
        "| [Two of them](two.md) | 2 | 3 | `brackets` | none |"
        in (tmp_path / "out" / "README.md").read_text()
    )


def test_a_page_may_show_every_run(tmp_path, monkeypatch):
    monkeypatch.setattr(leaderboard, "train_together", runs_all_but(("clip_cov", 1)))
    place = ["--board", "two", "--out", str(tmp_path / "out"), "--run-dir", str(tmp_path / "runs")]
    leaderboard.main(place)
    for shown in (True, False):
        monkeypatch.setitem(BOARDS, "two", dataclasses.replace(BOARD, every_run=shown))
        leaderboard.main([*place, "--page"])
        page = (tmp_path / "out" / "two.md").read_text()
        # Two evaluations that are alike: nothing fell.
        assert ("| `grpo` | 1 | 0.300, 0 | 0.300 | 0.600 | 0.2000 | – | – |" in page) == shown
        assert "- `few`, seed 1: step 3: loss is nan" in page


def test_a_page_needs_the_baseline_and_tells_who_drew_less(tmp_path, monkeypatch):
    monkeypatch.setattr(leaderboard, "train_together", runs_all_but(None))
    place = ["--board", "two", "--out", str(tmp_path / "out"), "--run-dir", str(tmp_path / "runs")]
    leaderboard.main([*place, "--entries", "rloo"])
    with pytest.raises(ValueError, match=r"a run of its baseline grpo; .* --entries grpo --out"):
        leaderboard.main([*place, "--page"])
    leaderboard.main(place)
    leaderboard.main([*place, "--page"])
    # each drew 9 tokens of 1000
    page = (tmp_path / "out" / "two.md").read_text()
    assert "- `rloo`: 2 of 2 runs reached their last step before the token budget" in page
    assert "- `few`: mind this; 2 of 2 runs reached" in page
    monkeypatch.setitem(BOARDS, "two", dataclasses.replace(BOARD, sampled_tokens=9))
    leaderboard.main([*place, "--page"])
    assert "reached their last step" not in (tmp_path / "out" / "two.md").read_text()


def test_the_page_of_a_board_for_choosing_names_the_best_of_each_method(tmp_path, monkeypatch):
    def train_together(configs, console, jobs, ended):
        for config in configs:
            write_run(config, 0.5 + 0.1 * ("fraction=0.02" in config.hyperparameters))
            ended(config, {})

    monkeypatch.setattr(leaderboard, "train_together", train_together)
    entries = ENTRIES | {"more": "clip_cov:fraction=0.02"}
    tried = dataclasses.replace(BOARD, entries=entries, sampled_tokens=9)
    place = ["--board", "two", "--out", str(tmp_path / "out"), "--run-dir", str(tmp_path / "runs")]
    for chooses in (True, False):
        monkeypatch.setitem(BOARDS, "two", dataclasses.replace(tried, chooses=chooses))
        leaderboard.main(place)
        leaderboard.main([*place, "--page"])
        page = (tmp_path / "out" / "two.md").read_text()
        assert ("- `more`: best of 2 values of `clip_cov` by mean pass@32" in page) == chooses
        assert "- `few`: mind this\n" in page


def row(value, processor="here", digest="a", jax="1"):
    return {
        "board": "two",
        "entry": "grpo",
        "processor": processor,
        "versions": {"jax": jax},
        "metrics_sha256": digest,
        "end": {"pass@32": value},
    }


def test_a_check_compares_bytes_here_and_an_interval_elsewhere():
    rows = [row(0.5), row(0.6), row(0.7)]
    assert "the same metrics.jsonl, a" in leaderboard.agreement(rows[0], row(0.5), rows)
    with pytest.raises(ValueError, match=r"must have the hash a, got b"):
        leaderboard.agreement(rows[0], row(0.5, digest="b"), rows)
    # .6 ± 4.303 · .1 · √(4/3)
    assert "pass@32 1.090 in [0.103, 1.097]" in leaderboard.agreement(
        rows[0], row(1.09, "there", "b"), rows
    )
    with pytest.raises(ValueError, match=r"must be in \[0.103, 1.097\], got 1.100"):
        leaderboard.agreement(rows[0], row(1.1, "there", "b"), rows)
    told = leaderboard.agreement(rows[0], row(1.09, digest="b", jax="2"), rows)
    assert told == "jax 2 in place of 1; pass@32 1.090 in [0.103, 1.097]"


def test_a_check_elsewhere_needs_two_runs_and_their_commit(tmp_path):
    with pytest.raises(ValueError, match=r"grpo must have two runs on here .*, got 1"):
        leaderboard.agreement(row(0.5), row(0.5, "there", "b"), [row(0.5), row(0.6, "there")])
    line = row(0.5) | {"seed": 0, "commit": "0" * 40}
    append_row(tmp_path / "results.jsonl", line)
    with pytest.raises(ValueError, match=r"check: commit 0+ must be in"):
        leaderboard.check_one(leaderboard.Config(out=tmp_path), random.Random(0))


def test_a_check_needs_a_line(tmp_path):
    config = leaderboard.Config(out=tmp_path)
    with pytest.raises(ValueError, match="must have lines of ended runs, got none"):
        leaderboard.check_one(config, random.Random(0))
    append_row(tmp_path / "results.jsonl", {"board": "two", "entry": "x", "seed": 0, "failed": "y"})
    with pytest.raises(ValueError, match="must have lines of ended runs, got none"):
        leaderboard.check_one(config, random.Random(0))


def test_an_unknown_board_is_refused():
    with pytest.raises(ValueError, match=r"board must be one of objectives.*, got 'nothing'"):
        leaderboard.main(["--board", "nothing"])


@pytest.mark.thorough
@pytest.mark.parametrize("name", BOARDS)
def test_every_entry_of_a_board_has_settings_that_can_be_read(name, monkeypatch):
    board = BOARDS[name]
    monkeypatch.setattr(leaderboard, "shipped_weights", lambda: "somewhere/small.gguf")
    config = leaderboard.Config(board=name)
    read = [leaderboard.run_config(config, board, entry, 0) for entry in board.entries]
    assert {each.sampled_tokens for each in read} == {board.sampled_tokens}
    assert {each.policy.model for each in read} == {"somewhere/small.gguf" if board.model else ""}
    assert next(iter(board.entries.values())).startswith("grpo")
    assert len({each.replace(seed=1) for each in read}) == len(board.entries)
    for each in read:
        recipe = methods.recipe(each.method, **method_arguments(each.replace(response_tokens=16)))
        given = recipe.experience.writes if recipe.experience else ()
        check_needs(recipe, each.method, each.plan.updates, given)


def test_settings_are_chosen_on_prompts_and_seeds_that_are_not_reported():
    tuning = BOARDS["tuning"]
    reported = [board for name, board in BOARDS.items() if name != "tuning"]
    assert "held_out=dev" in tuning.task
    assert not any("held_out" in board.task for board in reported)
    # Candidates that look separated get seeds up to 9.
    assert all(board.first_seed + board.seeds <= 10 <= tuning.first_seed for board in reported)


def test_the_tuned_methods_have_the_values_that_were_best():
    rows = read_rows(leaderboard.Config().out / "results.jsonl")
    tried = [row for row in rows if row["board"] == "tuning"]
    chosen = chosen_entries(tried, BOARDS["tuning"].main)
    settings = {method: BOARDS["tuning"].entries[entry] for method, entry in chosen.items()}
    assert settings == BOARDS["tuned"].entries

    def value(entry):
        return float(re.split("[=(]", entry)[-1].strip(")"))

    for method, entry in chosen.items():
        values = [value(row["entry"]) for row in tried if row["method"] == method]
        note = BOARDS["tuned"].notes.get(method, "")
        assert ("lowest" in note) == (value(entry) == min(values))
        assert ("highest" in note) == (value(entry) == max(values))


def test_a_board_of_a_language_model_has_its_own_number(tmp_path, monkeypatch):
    monkeypatch.setattr(leaderboard, "train_together", runs_all_but(None))
    monkeypatch.setattr(leaderboard, "shipped_weights", lambda: tmp_path / "small.gguf")
    other = dataclasses.replace(BOARD, model="smollm2", main="pass@1")
    monkeypatch.setitem(BOARDS, "two", other)
    place = ["--board", "two", "--out", str(tmp_path / "out"), "--run-dir", str(tmp_path / "runs")]
    leaderboard.main(place)
    leaderboard.main([*place, "--page"])
    rows = read_rows(tmp_path / "out" / "results.jsonl")
    assert {row["settings"]["model"] for row in rows} == {"small.gguf"}
    page = (tmp_path / "out" / "two.md").read_text()
    assert "Task `brackets` with its presets and SmolLM2-135M-Instruct." in page
    assert "| pass@1 − baseline |" in page and "pass@32" not in page
    assert "another processor; pass@1" in leaderboard.agreement(
        rows[0], rows[0] | {"processor": "there"}, rows
    )


def test_a_board_begins_with_its_own_seed(tmp_path, monkeypatch):
    monkeypatch.setattr(leaderboard, "train_together", runs_all_but(None))
    monkeypatch.setitem(BOARDS, "two", dataclasses.replace(BOARD, first_seed=7, seeds=1))
    place = ["--board", "two", "--out", str(tmp_path / "out"), "--run-dir", str(tmp_path / "runs")]
    leaderboard.main(place)
    leaderboard.main([*place, "--first-seed", "0"])
    rows = read_rows(tmp_path / "out" / "results.jsonl")
    assert [row["seed"] for row in rows] == [7, 7, 0, 0]


@pytest.mark.thorough
def test_the_first_value_that_is_tried_is_that_of_the_preset():
    board, tried = BOARDS["tuning"], {}
    for setting in board.entries.values():
        tried.setdefault(setting.partition(":")[0], []).append(setting)
    assert len(tried) == 12 and {len(own) for own in tried.values()} == {3}
    config = leaderboard.Config(board="tuning")
    for method, settings in tried.items():
        plain, first, second, third = (
            leaderboard.run_config(config, board, entry, 0) for entry in (method, *settings)
        )
        recipes = [
            (
                methods.recipe(method, **parse_hyperparameters(method, each.hyperparameters)),
                each.replace(hyperparameters=(), run_dir=plain.run_dir),
            )
            for each in (plain, first, second, third)
        ]
        assert recipes[0] == recipes[1]
        assert len(set(recipes[1:])) == 3
