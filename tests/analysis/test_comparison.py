"""Comparisons: intervals against scipy, pairing by seed, and what may be said."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest
from analysis_runs import write_run
from numpy.testing import assert_allclose
from scipy import stats

from rlvr_jax.analysis.comparison import compare_runs, main
from rlvr_jax.analysis.comparison_page import _block, _block_means
from rlvr_jax.analysis.seed_statistics import crossing, mean_interval, value_at

RTOL = 1e-12  # float64, sums of a few numbers


def write_curve(path, method, seed, pass_1, pass_8, group_size=8):
    """A run of three evaluations whose numbers the test chooses."""
    path.mkdir(parents=True)
    settings = {"method": method, "seed": seed, "task": "t", "prompts_per_step": 4}
    (path / "config.json").write_text(json.dumps(settings | {"samples_per_prompt": group_size}))
    rows = [
        {"step": 10 * i, "held_out/pass@1": a, "held_out/pass@8": b, "held_out/n": 16}
        for i, (a, b) in enumerate(zip(pass_1, pass_8, strict=True))
    ]
    (path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def charts_of(folder):
    """The charts of a written page, by title."""
    page = (folder / "comparison.html").read_text("utf-8")
    data = json.loads(re.search(r'<script type="application/json".*?>(.*?)</script>', page)[1])
    return {chart["title"]: chart for chart in data["sections"][0]["charts"]}


@pytest.fixture
def four(tmp_path):
    """Two methods, two seeds; pass@8 differs by .2 and .3, pass@1 by +.1 and -.1."""
    return [
        write_curve(tmp_path / "a0", "a", 0, [0.2, 0.4, 0.5], [0.5, 0.5, 0.5]),
        write_curve(tmp_path / "a1", "a", 1, [0.2, 0.4, 0.6], [0.5, 0.6, 0.6]),
        write_curve(tmp_path / "b1", "b", 1, [0.2, 0.3, 0.5], [0.5, 0.7, 0.9]),
        write_curve(tmp_path / "b0", "b", 0, [0.2, 0.4, 0.6], [0.5, 0.6, 0.7]),
    ]


@pytest.mark.parametrize("values", [[0.1, 0.4], [1.0, 2.0, 4.0, 8.0, 16.0], [0.3] * 5])
def test_the_interval_is_the_t_interval(values):
    found = mean_interval(values)
    error = np.std(values, ddof=1) / np.sqrt(len(values))
    assert_allclose(found.mean, np.mean(values), rtol=RTOL)
    wanted = stats.t.ppf(0.975, len(values) - 1) * error
    assert_allclose(found.half_width, wanted, rtol=1e-9, atol=1e-15)  # two t quantile codes


def test_one_value_has_no_interval_and_shows_nothing():
    found = mean_interval([0.5, float("nan")])
    assert np.isnan(found.half_width) and found.values == (0.5,) and not found.excludes_zero
    assert str(found) == "0.500" and str(mean_interval([])) == "–"


@pytest.mark.parametrize(
    "values",
    [[0.0625, 0.0625], [0.1 + 0.2 - 0.3] * 2, [0.3 - 0.2, 0.4 - 0.3], [5.6e-17] * 4 + [1.1e-16]],
)
def test_equal_values_have_no_interval_and_show_nothing(values):
    found = mean_interval(values)
    assert not found.exists and not found.excludes_zero
    assert found.signed == f"+{np.mean(values):.3f}"


def test_interpolation_finds_levels_and_values():
    x, y = [0, 10, 20], [0.2, 0.4, 0.3]
    assert_allclose(crossing(x, y, 0.3), 5.0)
    assert crossing(x, y, 0.2) == 0.0
    assert np.isnan(crossing(x, y, 0.1)) and np.isnan(crossing(x, y, 0.5))
    assert_allclose(crossing([0, 1, 2, 3], [0.1, np.nan, 0.5, 0.6], 0.3), 1.0)
    assert_allclose(value_at(x, y, 15.0), 0.35)
    assert np.isnan(value_at(x, y, 21.0)) and np.isnan(value_at(x, y, np.nan))


def test_a_level_is_reached_up_to_rounding():
    below = 0.4799999999999999  # 0.48 as a mean of 25 shares
    assert below < 0.48
    assert_allclose(crossing([0, 10], [0.2, below], 0.48), 10.0)
    assert crossing([0, 10], [0.2, below], 0.48) <= 10.0
    assert crossing([0, 10], [0.48 + 1e-16, 0.5], 0.48) == 0.0
    assert crossing([0, 10], [below, 0.5], 0.48) == 0.0
    assert np.isnan(crossing([0, 10], [0.2, 0.4799], 0.48))


def test_a_run_that_ends_at_the_common_level_but_for_rounding_is_counted(tmp_path):
    runs = [
        write_curve(tmp_path / "a", "a", 0, [0.2, 0.3, 0.4799999999999999], [0.5, 0.6, 0.7]),
        write_curve(tmp_path / "b", "b", 0, [0.2, 0.3, 0.6], [0.5, 0.6, 0.8]),
    ]
    found = compare_runs(tmp_path / "out", runs).equal_pass
    assert found.where == "at held-out pass@1 = 0.48"
    assert_allclose(found.values["held_out/pass@8"]["a"][0], 0.7)


def test_differences_are_paired_by_seed(four, tmp_path):
    found = compare_runs(tmp_path / "out", four, baseline="a")
    gap = found.equal_rollouts.difference("held_out/pass@8", "b", "a")
    assert_allclose(sorted(gap.values), [0.2, 0.3])
    assert_allclose(gap.mean, 0.25)
    assert found.equal_rollouts.values["held_out/pass@8"]["b"] == {1: 0.9, 0: 0.7}


def test_values_are_taken_at_equal_rollouts_not_steps(tmp_path):
    runs = [
        write_curve(tmp_path / "a", "a", 0, [0.2, 0.4, 0.6], [0.2, 0.4, 0.6], group_size=4),
        write_curve(tmp_path / "b", "b", 0, [0.2, 0.4, 0.6], [0.2, 0.4, 0.6], group_size=8),
    ]
    found = compare_runs(tmp_path / "out", runs)
    assert found.x_name == "sampled rollouts" and "320" in found.equal_rollouts.where
    assert_allclose(found.equal_rollouts.values["held_out/pass@8"]["a"][0], 0.6)
    assert_allclose(found.equal_rollouts.values["held_out/pass@8"]["b"][0], 0.4)


def test_a_run_that_was_stopped_does_not_set_the_end_for_all(tmp_path):
    curve = [0.2, 0.4, 0.6]
    runs = [write_curve(tmp_path / f"{m}{n}", m, n, curve, curve) for m in "ab" for n in (0, 1)]
    for run in runs:
        card = json.loads((run / "config.json").read_text())
        (run / "config.json").write_text(json.dumps(card | {"steps": 20}))
    lines = (runs[3] / "metrics.jsonl").read_text().splitlines()
    (runs[3] / "metrics.jsonl").write_text("\n".join(lines[:2]) + "\n")
    found = compare_runs(tmp_path / "out", runs)
    assert "after 640 sampled rollouts" in found.equal_rollouts.where
    assert found.sentences[0].startswith("b seed 1 ended after 320 of 640 sampled rollouts")
    assert np.isnan(found.equal_rollouts.values["held_out/pass@8"]["b"][1])
    assert_allclose(found.equal_rollouts.mean("held_out/pass@8", "b").values, [0.6])


def test_rollouts_that_a_filter_dropped_count_as_sampled(tmp_path):
    curve = [0.2, 0.4, 0.6]
    runs = [write_curve(tmp_path / name, name, 0, curve, curve) for name in "ab"]
    metrics = runs[1] / "metrics.jsonl"
    rows = [json.loads(line) for line in metrics.read_text().splitlines()]
    rows[1]["sampled_rollouts"], rows[2]["sampled_rollouts"] = 100.0, 250.0
    metrics.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = compare_runs(tmp_path / "out", runs)
    assert found.x[runs[1]][[row["step"] for row in rows]].tolist() == [0, 100, 350]
    assert found.x[runs[0]][-1] == 32 * rows[2]["step"]


def test_the_mean_goes_as_far_as_all_seeds_whatever_they_sampled(tmp_path):
    runs = [write_curve(tmp_path / str(s), "a", s, [0.2, 0.4, 0.6], [0.2] * 3) for s in range(2)]
    for run, sampled in zip(runs, [(100, 200), (200, 400)], strict=True):
        rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        for row, count in zip(rows[1:], sampled, strict=True):
            row |= {"sampled_rollouts": count, "reward": 0.5}
        (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    compare_runs(tmp_path / "out", runs)
    charts = charts_of(tmp_path / "out")
    mean = charts["Held-out pass@1"]["series"][-1]
    # seed 0 rises by .2 in 100 and 200 rollouts, seed 1 in 200 and 400
    assert mean["points"] == [[0, 0.2], [100, 0.35], [200, 0.45], [300, 0.525]]
    assert [x for x, _, _ in mean["band"]] == [0, 100, 200, 300]
    assert charts["Reward"]["note"] == "n = 2 seeds, every step"
    assert [x for x, _ in charts["Reward"]["series"][-1]["points"]] == [200, 300]


@pytest.mark.parametrize("steps, block", [(29, 1), (30, 10), (1500, 10), (1501, 11)])
def test_long_runs_are_shown_in_means_of_as_many_steps_as_are_said(steps, block):
    assert _block(steps) == block
    points = np.arange(2.0 * steps).reshape(steps, 2)
    means = _block_means(points, block)
    assert len(means) == steps // block <= 150
    assert_allclose(means[-1], points[(steps // block - 1) * block :][:block].mean(0), rtol=RTOL)


def test_values_at_equal_pass_are_interpolated_at_the_level_all_reach(four, tmp_path):
    found = compare_runs(tmp_path / "out", four, baseline="a")
    assert found.equal_pass.where == "at held-out pass@1 = 0.50"
    at_level = found.equal_pass.values["held_out/pass@8"]
    assert_allclose([at_level["a"][0], at_level["a"][1]], [0.5, 0.6])
    assert_allclose([at_level["b"][0], at_level["b"][1]], [0.65, 0.9])


def test_a_chosen_level_counts_the_seeds_that_reach_it(four, tmp_path):
    found = compare_runs(tmp_path / "out", four, baseline="a", level=0.55)
    assert found.equal_pass.mean("held_out/pass@8", "a").values == pytest.approx([0.6])
    assert "(1 of 2)" in (tmp_path / "out" / "comparison.md").read_text("utf-8")


def test_without_a_common_level_there_is_one_view(tmp_path):
    runs = [
        write_curve(tmp_path / "a", "a", 0, [0.5, 0.5, 0.5], [0.6, 0.6, 0.6]),
        write_curve(tmp_path / "b", "b", 0, [0.2, 0.3, 0.4], [0.6, 0.6, 0.6]),
    ]
    assert compare_runs(tmp_path / "out", runs).equal_pass is None


def test_methods_within_the_interval_are_not_distinguishable(four, tmp_path):
    sentences = compare_runs(tmp_path / "out", four, baseline="a").sentences
    assert sentences[0].startswith("b is not distinguishable from a on pass@1 after 640 sampled")
    assert "(paired, 2 seeds, 95 % interval)" in sentences[0]


def test_many_methods_that_are_not_distinguishable_share_a_sentence(tmp_path):
    runs = [
        write_curve(tmp_path / f"{name}{seed}", name, seed, [0.2, 0.4, end], [0.5, 0.6, end])
        for name, ends in (
            ("a", (0.5, 0.6)),
            ("b", (0.6, 0.5)),
            ("c", (0.5, 0.7)),
            ("d", (0.7, 0.5)),
        )
        for seed, end in enumerate(ends)
    ]
    sentences = compare_runs(tmp_path / "out", runs, baseline="a").sentences
    assert sentences[0].startswith("3 methods are not distinguishable from a on pass@1 after")
    assert sentences[0].endswith(": b, c, d.")


def test_a_clear_difference_is_said_with_its_direction(tmp_path):
    runs = [
        write_run(tmp_path / f"{method}{seed}", method=method, seed=seed, steps=60, every=20)
        for method in ("grpo", "clip_cov")
        for seed in range(3)
    ]
    found = compare_runs(tmp_path / "out", runs, baseline="grpo")
    assert any(s.startswith("clip_cov is above grpo on pass@32 after") for s in found.sentences)
    assert charts_of(tmp_path / "out")["Reward"]["note"] == "n = 3 seeds, means of 10 steps"
    files = {path.name for path in (tmp_path / "out").iterdir()}
    pngs = ["reward", "held_out_pass_at_1", "held_out_pass_at_8", "held_out_pass_at_32", "entropy"]
    pngs += ["chosen_fraction", "held_out_hard_info_right_form"]
    assert files == {f"{name}.png" for name in pngs} | {"comparison.md", "comparison.html"}


def test_one_shared_seed_gives_no_verdict(tmp_path):
    runs = [
        write_curve(tmp_path / "a", "a", 0, [0.2, 0.4, 0.5], [0.2, 0.3, 0.4]),
        write_curve(tmp_path / "b", "b", 0, [0.2, 0.6, 0.8], [0.2, 0.8, 0.9]),
    ]
    sentences = compare_runs(tmp_path / "out", runs).sentences
    assert all("one paired seed gives no interval" in s for s in sentences)
    assert all("is not distinguishable from" in s for s in sentences)


def test_seeds_that_do_not_differ_give_no_verdict(tmp_path):
    runs = [
        write_curve(tmp_path / f"{name}{seed}", name, seed, [0.2, 0.4, 0.5], [0.5, 0.5, end])
        for name, end in (("a", 0.5), ("b", 0.5625))
        for seed in range(2)
    ]
    sentences = compare_runs(tmp_path / "out", runs).sentences
    assert sentences[1] == (
        "b is not distinguishable from a on pass@8 after 640 sampled rollouts: +0.062 in all 2"
        " paired seeds, which do not differ, so there is no interval."
    )
    assert "±" not in (tmp_path / "out" / "comparison.md").read_text("utf-8").split("## After")[1]


def test_the_pages_show_every_seed_n_and_load_nothing(four, tmp_path):
    compare_runs(tmp_path / "out", four, baseline="a")
    markdown = (tmp_path / "out" / "comparison.md").read_text("utf-8")
    assert "n = 16 samples per prompt" in markdown
    assert re.search(r"\| b \| 1 \| 0.500 \| 0.900 \|", markdown)
    for name in re.findall(r"\((\w+\.png)\)", markdown):
        assert (tmp_path / "out" / name).stat().st_size > 1000
    page = (tmp_path / "out" / "comparison.html").read_text("utf-8")
    assert not re.search(r"https?://|@import|url\(|<img|<link|src=", page)
    assert len(page) < 3_000_000


def test_names_that_differ_in_punctuation_have_charts_of_their_own(four, tmp_path):
    for run in four:
        rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        for row in rows:
            row |= {"held_out/info/long-form": 0.5, "held_out/info/long_form": 0.1}
        (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    compare_runs(tmp_path / "out", four)
    markdown = (tmp_path / "out" / "comparison.md").read_text("utf-8")
    shown = re.findall(r"\((\w+\.png)\)", markdown)
    names = ["held_out_info_long_form.png", "held_out_info_long_form_2.png"]
    assert shown[-2:] == names and len(set(shown)) == len(shown)
    one, other = ((tmp_path / "out" / name).read_bytes() for name in names)
    assert one != other


def test_one_method_with_two_settings_is_compared_by_name(four, tmp_path):
    named = {"small": four[:2], "large <b>": four[2:]}
    found = compare_runs(tmp_path / "out", named)
    assert list(found.runs) == ["small", "large <b>"] and found.baseline == "small"
    assert (
        "large <b>"
        not in (tmp_path / "out" / "comparison.html").read_text("utf-8").split("<script")[0]
    )


def test_what_cannot_be_compared_is_refused(four, tmp_path):
    with pytest.raises(ValueError, match="runs must name a run directory, got none"):
        compare_runs(tmp_path, [])
    with pytest.raises(ValueError, match=r"baseline must be one of \['a', 'b'\], got 'c'"):
        compare_runs(tmp_path, four, baseline="c")
    with pytest.raises(ValueError, match="one run per method and seed, got 'a' with seed 0"):
        compare_runs(tmp_path, [four[0], four[0]])
    other = write_run(tmp_path / "other", steps=4)
    with pytest.raises(ValueError, match="runs must share one task"):
        compare_runs(tmp_path, [four[0], other])
    (four[0] / "metrics.jsonl").unlink()
    with pytest.raises(ValueError, match="runs must have held_out/pass@1, got none in"):
        compare_runs(tmp_path, four)


def test_the_command_line_prints_what_may_be_said(four, tmp_path, capsys):
    main([*map(str, four), "--out", str(tmp_path / "out"), "--baseline", "a", "--level", "0.375"])
    assert "at held-out pass@1 = 0.375:" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="baseline must be one of"):
        main([str(four[0]), "--baseline", "zzz", "--out", str(tmp_path / "out")])


@pytest.mark.parametrize("module", ["comparison", "report"])
def test_the_modules_run_as_programs(module):
    command = [sys.executable, "-W", "error", "-m", f"rlvr_jax.analysis.{module}", "--help"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "RUN" in shown and "--out" in shown
