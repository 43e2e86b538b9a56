"""A board's lines and what they tell, on numbers whose answer is known."""

import hashlib
import json

import numpy as np
import pytest
from matplotlib.image import imread
from scipy import stats

from rlvr_jax.analysis.evidence.ranking import (
    chosen_entries,
    holm,
    rank_ranges,
    standings,
)
from rlvr_jax.analysis.evidence.rows import (
    append_row,
    commit_of,
    curve_row,
    failed_row,
    processor,
    read_rows,
    run_row,
)
from rlvr_jax.experiments.boards.board_page import write_board, write_picture
from rlvr_jax.experiments.boards.every_run import every_run_table, stays_from


def row(entry, seed, value, commit="a", processor="b", jax="1"):
    return {
        "board": "x",
        "entry": entry,
        "seed": seed,
        "end": {"pass@32": value},
        "commit": commit,
        "processor": processor,
        "versions": {"jax": jax},
    }


def test_holm_multiplies_by_what_is_left_and_never_falls():
    found = holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": float("nan")})
    assert found["a"] == pytest.approx(0.03)
    assert found["c"] == pytest.approx(0.06)
    assert found["b"] == pytest.approx(0.06)  # .04 by itself, but no less than the one before it
    assert np.isnan(found["d"])
    assert holm({"a": 0.9, "b": 0.8}) == {"a": 1.0, "b": 1.0}


def test_differences_are_paired_by_seed_commit_processor_and_jax():
    base = [row("grpo", seed, value) for seed, value in enumerate((0.5, 0.6, 0.7))]
    ours = [row("ours", seed, value) for seed, value in enumerate((0.6, 0.72, 0.81))]
    elsewhere = [row("ours", 3, 0.1), row("grpo", 3, 0.9, processor="another")]
    elsewhere += [row("ours", 5, 0.1), row("grpo", 5, 0.9, jax="2")]
    failed = [{"board": "x", "entry": "ours", "seed": 4, "failed": "loss is nan"}]
    best, last = standings([*base, *ours, *elsewhere, *failed], "pass@32", "grpo")
    assert [best.entry, last.entry] == ["grpo", "ours"]  # with the seeds that no pair has
    assert last.difference.values == pytest.approx((0.1, 0.12, 0.11))
    assert last.p_value == pytest.approx(stats.ttest_rel((0.6, 0.72, 0.81), (0.5, 0.6, 0.7))[1])
    assert last.holm == last.p_value and last.looks_apart
    assert not best.difference.values and np.isnan(best.holm)
    with pytest.raises(ValueError, match=r"one of \['grpo', 'ours'\], got 'ppo'"):
        standings([*base, *ours], "pass@32", "ppo")


def test_the_best_value_of_each_method_is_chosen_from_whole_ones():
    tried = [("a=1", (0.5, 0.7)), ("a=2", (0.65, 0.65)), ("a=3", (0.9,)), ("b=1", (0.2, 0.2))]
    tried += [("b=2", (0.1, 0.3)), ("c=1", ())]
    rows = [row(name, seed, v) for name, own in tried for seed, v in enumerate(own)]
    rows = [each | {"method": each["entry"][0]} for each in rows]
    failed = {"board": "x", "entry": "c=1", "seed": 0, "method": "c", "failed": "loss is nan"}
    # a=3 has one seed of two; b=2 is no better than b=1, which stands first.
    assert chosen_entries([*rows, failed], "pass@32") == {"a": "a=2", "b": "b=1"}


def test_what_is_lost_is_told_from_where_it_lasts():
    steps = [0, 10, 20, 30]
    assert stays_from(steps, [1.0, 0.05, 0.2, 0.05], 0.1) == 30
    assert stays_from(steps, [1.0, 0.05, 0.02, 0.05], 0.1) == 10
    assert stays_from(steps, [1.0, 0.05, 0.02, 0.1], 0.1) is None
    # What was not measured is no collapse: an evaluation whose answers have no tokens.
    assert stays_from(steps, [1.0, 0.05, None, 0.05], 0.1) == 30
    assert stays_from(steps, [0.0] * 4, 0.0) is None


def test_every_run_has_a_row():
    curves = [
        {"entry": "b", "seed": 1, "step": [0, 10, 20], "held_out/entropy": [0.4, 0.03, 0.0312]}
        | {"held_out/pass@1": [0.5, 0.75, 0.25], "held_out/pass@8": [0.9, 0.9, 0.375]},
        {"entry": "a", "seed": 0, "step": [0, 10], "held_out/entropy": [0.4, None]}
        | {"held_out/pass@1": [0.5, 0.625], "held_out/pass@8": [0.9, 0.875]},
        {"entry": "b", "seed": 0, "step": [0, 10], "held_out/entropy": [0.4, 0.25]}
        | {"held_out/pass@1": [0.5, 0.5], "held_out/pass@8": [0.9, 0.75]},
        # A line from before curves had it.
        {"entry": "old", "seed": 0, "step": [0, 10], "entropy": [0.4, 0.01]}
        | {"held_out/pass@1": [0.5, 0.25], "held_out/pass@8": [0.9, 0.75]},
    ]
    rows = [line.strip("| ").split(" | ") for line in every_run_table(curves, "pass@8")[4:]]
    assert rows == [
        ["`b`", "0", "0.500, 0", "0.500", "0.750", "0.2500", "–", "–"],
        ["`b`", "1", "0.750, 10", "0.250", "0.375", "0.0312", "10", "20"],
        ["`a`", "0", "0.625, 10", "0.625", "0.875", "–", "–", "–"],
        ["`old`", "0", "0.500, 0", "0.250", "0.750", "–", "–", "10"],
    ]


def page_of(folder, rows):
    for each in rows:
        each["end"] |= {"pass@1": 0.3 + 0.01 * each["seed"], "entropy": 0.25, "train_entropy": 0.0}
        each["start"] = {"pass@1": 0.2, "pass@32": 0.7}
    write_board(folder / "x.md", "X", "Steps.", rows, "grpo")
    text = (folder / "x.md").read_text()
    lines = {line.split("`")[1]: line for line in text.splitlines() if line.startswith("| `")}
    return text, {name: line.strip("| ").split(" | ") for name, line in lines.items()}


def test_a_board_of_two_processors_pairs_within_one(tmp_path):
    rows = []
    for seed in range(6):
        here = "one" if seed < 3 else "two"
        rows.append(row("grpo", seed, 0.5 + 0.01 * seed, processor=here))
        # As far above on either processor, and far below where the other one ran the baseline.
        away = {"one": "two", "two": "one"}[here] if seed == 4 else here
        value = 0.1 if seed == 4 else 0.6 + 0.011 * seed
        rows.append(row("ours", seed, value, processor=away))
        rows.append(row("whole", seed, 0.4 + 0.01 * seed**1.1, processor=here))
        rows.append(row("elsewhere", seed, 0.9, processor="three"))
    standing = {each.entry: each for each in standings(rows, "pass@32", "grpo")}
    assert {name: each.pairs for name, each in standing.items()} == {
        **{"grpo": 0, "ours": 5, "whole": 6, "elsewhere": 0}
    }
    assert standing["ours"].difference.mean == pytest.approx(0.1 + 0.001 * 11 / 5)
    # What is not beside the baseline at a seed that most have is in no rank.
    assert standing["ours"].ranks is standing["elsewhere"].ranks is None
    assert standing["grpo"].ranks == (1, 1) and standing["whole"].ranks == (2, 2)
    # p is corrected for the two that were tested.
    tested = [standing[name] for name in ("ours", "whole")]
    assert min(each.holm for each in tested) == pytest.approx(
        2 * min(each.p_value for each in tested)
    )

    text, cells = page_of(tmp_path, rows)
    assert "24 runs of 4 entries; commit a; processor" in text
    assert "one (10 runs), three (6 runs), two (8 runs); jax 1." in text
    assert "Runs without a run of `grpo` with the same seed, commit, processor and version" in text
    assert "of JAX: 7. They count in means" in text
    assert "- Fewer than 2 pairs to compare: `elsewhere`." in text and "distinguishable" not in text
    assert [cells[name][2] for name in ("grpo", "ours", "whole")] == ["6", "6, 5 paired", "6"]
    assert cells["elsewhere"][5:8] == ["", "–", "–"]
    alike = [each | {"processor": "one"} for each in rows]
    text, cells = page_of(tmp_path, alike)
    assert "Runs without a run of" not in text and "processor (name, family" in text
    assert ") one; jax 1.\n" in text and cells["ours"][2] == "6" and cells["ours"][7] != "–"


def test_a_page_says_how_sure_it_is(tmp_path):
    rows = [row("grpo", seed, 0.5 + 0.01 * seed) for seed in range(5)]
    for name, gaps in (
        ("far", (0.3, 0.301, 0.302, 0.301, 0.3)),
        ("plain", (0.02, 0.05, 0.03, 0.06, 0.01)),
        ("same", (0.0, 0.0, 0.0, 0.0, 0.0)),
        *((f"like_{i}", (0.03, -0.05, 0.01 * i, 0.0, 0.02)) for i in range(9)),
    ):
        rows += [row(name, seed, 0.5 + 0.01 * seed + gap) for seed, gap in enumerate(gaps)]
    text, cells = page_of(tmp_path, rows)
    assert cells["far"][6] == "< 0.001"
    assert "not distinguishable from `grpo` with these seeds: 11." in text
    assert "Without the correction, the intervals of 1 of them exclude 0;" in text
    # Entropy is of the held-out answers: a last step may train on nothing that was drawn.
    assert cells["far"][-1] == "0.250"
    # No form is spoken of that the task does not have.
    assert "rare form" not in text.lower() and len(cells["far"]) == 9
    for each in rows:
        each["end"]["hard/info/right_form"] = 0.5
        each["start"]["hard/info/right_form"] = 0.5 if each["seed"] else 0.1
    write_board(tmp_path / "x.md", "X", "Steps.", rows, "grpo")
    text = (tmp_path / "x.md").read_text()
    assert "| rare form |" in text and "| 0.50, 1 of 5 |" in text


def test_what_looks_apart_is_spoken_of_with_ten_seeds(tmp_path):
    rows = []
    for seed in range(10):
        rows += [row("grpo", seed, 0.5 + 0.01 * seed), row("ours", seed, 0.6 + 0.011 * seed)]
    for each in rows:
        each["end"] |= {"pass@1": 0.3, "entropy": 0.1}
        each["start"] = each["end"]
    nine, ten = (standings(rows[: 2 * seeds], "pass@32", "grpo")[0] for seeds in (9, 10))
    assert (nine.entry, nine.looks_apart, nine.is_apart) == ("ours", True, False)
    assert ten.looks_apart and ten.is_apart
    pages = {}
    for seeds in (9, 10):
        write_board(tmp_path / "x.md", "X", "Steps.", rows[: 2 * seeds], "grpo")
        pages[seeds] = (tmp_path / "x.md").read_text()
    above = "Above `grpo` on pass@32 after Holm's correction: "
    early = "than the 10 pairs that a claim needs (`--entries grpo …`, `--seeds 10`): `ours`."
    assert above + "none." in pages[9] and early in pages[9]
    assert above + "`ours`." in pages[10] and "a claim needs" not in pages[10]


@pytest.mark.parametrize(
    "first, second, told",
    [
        ((0.2, 0.21, 0.19), (0.1, 0.12, 0.11), "boundary out"),
        ((0.2, 0.21, 0.19), (0.1, -0.1, 0.02), "sharpened"),
        ((0.2, 0.21, 0.19), (-0.1, -0.12, -0.11), "sharpened at a price"),
        ((0.02, -0.02, 0.01), (0.1, 0.12, 0.11), "wider"),
        ((-0.2, -0.21, -0.19), (-0.1, -0.12, -0.11), "unlearned"),
        ((0.2,), (0.1,), "–"),
    ],
)
def test_a_page_says_what_a_method_did_to_the_base(tmp_path, first, second, told):
    rows = [row("grpo", seed, 0.5 + gap) for seed, gap in enumerate(second)]
    for each, gap in zip(rows, first, strict=True):
        each["start"] = {"pass@1": 0.3, "pass@32": 0.5}
        each["end"] |= {"pass@1": 0.3 + gap, "entropy": 0.1}
    write_board(tmp_path / "x.md", "X", "Steps.", rows, "grpo")
    assert f"| `grpo` | {told} | {len(first)} |" in (tmp_path / "x.md").read_text()


def size_of(picture):
    return imread(picture).shape[:2]


@pytest.mark.thorough
@pytest.mark.parametrize("spread", [0.0, 0.01])
def test_a_picture_of_many_methods_has_a_second_panel(tmp_path, spread):
    runs = {}
    for number in range(25):
        each = row(f"method_{number}", 0, 0.5 + spread * number)
        each |= {"start": {"pass@32": 0.4}}
        each["end"] |= {"entropy": 0.1 + spread * number}
        runs[each["entry"]] = [each]
    write_picture(tmp_path / "many.png", runs)
    assert size_of(tmp_path / "many.png") == (1100, 880)
    # Of a line of an older version no entropy is known.
    runs["method_0"][0]["end"].pop("entropy")
    write_picture(tmp_path / "few.png", {name: runs[name] for name in ("method_0", "method_1")})
    assert size_of(tmp_path / "few.png") == (550, 880)


def test_equal_pairs_are_no_test():
    rows = [
        row(entry, seed, value) for entry, value in (("a", 0.5), ("b", 0.75)) for seed in (0, 1)
    ]
    first = standings(rows, "pass@32", "a")[0]
    assert first.entry == "b" and np.isnan(first.p_value) and not first.looks_apart


def test_ranks_are_ranges_where_seeds_disagree():
    values = {
        "best": {0: 0.9, 1: 0.91, 2: 0.92},
        "one": {0: 0.5, 1: 0.6, 2: 0.4},
        "other": {0: 0.45, 1: 0.5, 2: 0.6},
        "begun": {0: 0.99},
    }
    found = rank_ranges(values)
    assert found == {"best": (1, 1), "one": (2, 3), "other": (2, 3)}
    assert rank_ranges({"a": {0: 1.0}, "b": {0: 0.5}}) == {}
    # Two that are equal share their ranks.
    assert rank_ranges({"a": {0: 1.0, 1: 0.5}, "b": {0: 1.0, 1: 0.5}}) == {"a": (1, 2), "b": (1, 2)}


def write_run(path):
    path.mkdir()
    card = {"method": "grpo", "seed": 3, "settings": {"task": "brackets"}, "versions": {"jax": "1"}}
    (path / "config.json").write_text(json.dumps(card))
    metrics = [
        {"step": 0, "held_out/n": 4, "held_out/pass@1": 0.25, "held_out/entropy": 0.3},
        {"step": 1, "entropy": 0.2, "sampled_tokens": 10.0, "experience/hint/acted": 0.5},
        {
            "step": 2,
            "entropy": 0.1234567,
            "sampled_tokens": 11.0,
            "experience/hint/acted": 1.0,
            "held_out/n": 4,
            "held_out/pass@1": 0.5,
            "held_out/entropy": 0.1,
        },
        # Nothing was left to be trained on.
        {"step": 3, "entropy": None, "sampled_tokens": 4.0, "experience/hint/acted": 0.0}
        | {"held_out/n": 4, "held_out/pass@1": 0.5, "held_out/entropy": 0.1},
    ]
    text = "".join(json.dumps(each) + "\n" for each in metrics)
    (path / "metrics.jsonl").write_text(text)
    (path / "timings.jsonl").write_text('{"step": 1, "wall_s": 1.25}\n{"step": 2, "wall_s": 2.5}\n')
    return hashlib.sha256(text.encode()).hexdigest()


def test_a_run_is_a_line_and_its_curves_another(tmp_path):
    digest = write_run(tmp_path / "run")
    found = run_row(tmp_path / "run", "x", "grpo:clip_high=0.3", "c0ffee")
    assert found["end"] == {"pass@1": 0.5, "entropy": 0.1, "train_entropy": 0.12346}
    assert found["start"]["train_entropy"] == 0.2
    assert found["parts"] == {"hint/acted": 0.5}
    assert (found["sampled_tokens"], found["steps"], found["seconds"]) == (25, 3, 4)
    assert found["metrics_sha256"] == digest
    # Of a run that does not say its devices, or says a CPU.
    assert found["processor"] == processor()
    card = json.loads((tmp_path / "run" / "config.json").read_text())
    settings = {"method": "grpo", "seed": 4}
    for device, wanted in ("cpu", processor()), ("NVIDIA H200", "NVIDIA H200"):
        (tmp_path / "run" / "config.json").write_text(json.dumps(card | {"device": device}))
        assert run_row(tmp_path / "run", "x", "grpo", "c0ffee")["processor"] == wanted
        lost = failed_row(tmp_path / "run", "x", "grpo", settings, "loss is nan", "c0ffee")
        assert lost["processor"] == wanted
    curves = curve_row(tmp_path / "run", "x", "grpo:clip_high=0.3")
    assert curves["held_out/pass@1"] == [0.25, 0.5, 0.5]
    assert curves["held_out/entropy"] == [0.3, 0.1, 0.1]
    # Of the held-out answers where none was drawn.
    assert curves["entropy"] == [0.3, 0.12346, None]
    assert curves["sampled_tokens"] == [0, 21, 25]
    append_row(tmp_path / "new" / "results.jsonl", found)
    failed = failed_row(tmp_path / "none", "x", "grpo", settings, "loss is nan", "c0ffee")
    assert failed["processor"] == processor()
    append_row(tmp_path / "new" / "results.jsonl", failed)
    assert read_rows(tmp_path / "new" / "results.jsonl") == [found, failed]
    append_row(tmp_path / "new" / "results.jsonl", failed)
    with pytest.raises(ValueError, match=r"one line per run, got several of \('x', 'grpo', 4\)"):
        read_rows(tmp_path / "new" / "results.jsonl")
    assert read_rows(tmp_path / "none.jsonl") == []
    append_row(tmp_path / "old.jsonl", {"drawn_tokens": 25})
    with pytest.raises(ValueError, match=r"old\.jsonl must have sampled_tokens, got drawn_tokens"):
        read_rows(tmp_path / "old.jsonl")


def test_code_must_be_as_it_was_committed(tmp_path):
    with pytest.raises(ValueError, match="must be a git checkout"):
        commit_of(tmp_path)
