"""Intervals over held-out prompts."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rlvr_jax.analysis.comparison import compare_runs
from rlvr_jax.analysis.prompt_bootstrap import bootstrap_mean, estimates


def test_one_seed_gives_the_interval_of_a_mean_over_prompts():
    values = np.random.default_rng(1).uniform(size=(1, 400))
    found = bootstrap_mean(values, np.ones(400), rounds=4000)
    error = values.std(ddof=1) / 20
    assert found.mean == pytest.approx(values.mean()) and (found.seeds, found.prompts) == (1, 400)
    # 4000 draws give quantiles of a normal distribution to some hundredths of its deviation.
    assert_allclose(found.low, values.mean() - 1.96 * error, atol=error / 8)
    assert_allclose(found.high, values.mean() + 1.96 * error, atol=error / 8)


def test_seeds_that_differ_widen_it_and_equal_differences_close_it():
    prompts = np.random.default_rng(2).uniform(size=(1, 50))
    equal = bootstrap_mean(np.repeat(prompts, 4, axis=0), np.ones(50))
    apart = bootstrap_mean(prompts + np.array([[-0.3], [-0.1], [0.1], [0.3]]), np.ones(50))
    assert apart.high - apart.low > 1.5 * (equal.high - equal.low)
    same = bootstrap_mean(np.full((3, 50), 0.25), np.ones(50))
    assert_allclose([same.low, same.mean, same.high], 0.25)


def test_prompts_count_by_their_weights():
    values, weights = np.array([[1.0] * 10 + [0.0] * 10]), np.array([0.09] * 10 + [0.01] * 10)
    found = bootstrap_mean(values, weights)
    assert found.mean == pytest.approx(0.9) and 0.7 < found.low < 0.9 < found.high <= 1
    assert found == bootstrap_mean(values, weights)


@pytest.mark.parametrize(
    ("values", "weights", "message"),
    [
        (np.zeros((0, 3)), np.ones(3), "values must be"),
        (np.zeros((2, 3)), np.ones(2), "values must be"),
        (np.zeros((2, 3)), np.zeros(3), "weights must be at least 0 with a positive sum"),
        (np.zeros((2, 3)), np.array([1, -1, 1]), "weights must be at least 0"),
    ],
)
def test_what_cannot_be_drawn_from_is_refused(values, weights, message):
    with pytest.raises(ValueError, match=message):
        bootstrap_mean(values, weights)


def test_evaluations_of_other_prompts_are_not_mixed():
    counts = [{"n": 4, "prompts": [number], "correct": [1]} for number in (0, 1)]
    assert_allclose(estimates(counts[:1], 2), [[0.5]])
    with pytest.raises(ValueError, match="of the same prompts"):
        estimates(counts, 2)


def write_run(
    path, method, seed, correct, prompts=(0, 1, 2, 3), step=0, steps=0, weights=(0.25,) * 4
):
    """A run of one evaluation, four samples of each prompt."""
    path.mkdir()
    settings = {"method": method, "seed": seed, "task": "t", "steps": steps, "prompts_per_step": 4}
    (path / "config.json").write_text(json.dumps(settings | {"samples_per_prompt": 8}))
    row = {"step": step, "held_out/n": 4, "held_out/pass@1": float(np.mean(correct)) / 4}
    (path / "metrics.jsonl").write_text(json.dumps(row) + "\n")
    counts = {"step": step, "n": 4, "prompts": list(prompts), "correct": list(correct)}
    line = json.dumps(counts | {"weights": list(weights)})
    (path / "held_out.jsonl").write_text(line + "\n")
    return path


def test_a_comparison_pairs_prompts_and_seeds(tmp_path):
    runs = [
        write_run(tmp_path / "a0", "a", 0, [0, 2, 4, 1]),
        write_run(tmp_path / "a1", "a", 1, [1, 1, 4, 2]),
        write_run(tmp_path / "b1", "b", 1, [2, 2, 4, 3]),
        write_run(tmp_path / "b0", "b", 0, [1, 3, 4, 2]),
    ]
    found = compare_runs(tmp_path / "out", runs).prompts["held_out/pass@1"]
    assert found["a"].mean == pytest.approx(15 / 32) and found["a"].seeds == 2
    # One right sample more of every prompt but the third, for both seeds.
    gap = found["b − a"]
    assert gap.mean == pytest.approx(0.75 * 0.25) and 0 <= gap.low < gap.mean < gap.high <= 0.25
    page = (tmp_path / "out" / "comparison.md").read_text()
    assert "## Uncertainty over held-out prompts" in page and f"| b − a | {gap} |" in page
    assert "Uncertainty over held-out" in (tmp_path / "out" / "comparison.html").read_text()


@pytest.mark.parametrize(
    "other",
    [
        {"prompts": (0, 1, 2, 9)},
        {"weights": (0.1, 0.2, 0.3, 0.4)},
        {"step": 3, "steps": 3},
        {"steps": 3},  # still on its way, and the only run of its method
    ],
    ids=str,
)
def test_runs_that_asked_others_have_no_such_table(tmp_path, other):
    runs = [
        write_run(tmp_path / "a0", "a", 0, [0, 2, 4, 1]),
        write_run(tmp_path / "b0", "b", 0, [0, 2, 4, 1], **other),
    ]
    assert compare_runs(tmp_path / "out", runs).prompts == {}
    assert "If other prompts" not in (tmp_path / "out" / "comparison.md").read_text()


@pytest.mark.parametrize("steps", [(0, 0), (0, 2)], ids=["together", "apart"])
def test_runs_on_their_way_have_no_such_table(tmp_path, steps):
    runs = [
        write_run(tmp_path / method, method, 0, [0, 2, 4, 1], step=step, steps=9)
        for method, step in zip("ab", steps, strict=True)
    ]
    assert compare_runs(tmp_path / "out", runs).prompts == {}


@pytest.mark.parametrize(
    ("values", "changes", "sentence"),
    [
        ([[np.nan, 1.0]], {}, "values must be finite"),
        ([[0.0, 1.0]], {"rounds": 0}, "rounds must be at least 1, got 0"),
    ],
)
def test_what_gives_no_interval_is_refused(values, changes, sentence):
    with pytest.raises(ValueError, match=sentence):
        bootstrap_mean(values, [1.0, 1.0], **changes)
    with pytest.raises(ValueError, match="counts must have an evaluation, got none"):
        estimates([], 1)
