"""What the first fifth of a run says about its end."""

import json

import numpy as np
import pytest
from analysis_runs import write_run
from numpy.testing import assert_allclose

from rlvr_jax.analysis import load_run
from rlvr_jax.analysis.entropy.law_prediction import (
    controls_entropy,
    forecast,
    forecast_run,
    main,
)

RTOL = 1e-9  # float64; the slope is a quotient of small differences
STEPS = np.arange(0, 101, 5)


def test_a_run_that_keeps_the_law_is_forecast_without_error():
    entropy = np.linspace(0.5, 0.02, len(STEPS))
    found = forecast(STEPS, entropy, 2.0 - 1.2 * np.exp(entropy))
    assert found.num_first == 5 and found.num_points == 21
    assert_allclose(found.score_error, 0, atol=RTOL)
    assert_allclose(found.ceiling_error, 1.2 * (np.exp(0.02) - 1), rtol=1e-6)


def test_a_run_that_leaves_the_curve_is_off_by_how_far_it_left():
    entropy = np.linspace(0.5, 0.02, len(STEPS))
    score = 2.0 - 1.2 * np.exp(entropy) - np.where(STEPS > 50, 0.1, 0)
    assert_allclose(forecast(STEPS, entropy, score).score_error, 0.1, rtol=1e-6)


@pytest.mark.parametrize("number", [0, 1, 4])
def test_too_few_or_equal_points_have_no_fit(number):
    found = forecast(range(number), np.full(number, 0.3), np.full(number, 0.5))
    assert found.law is None and found.score_error is None and found.num_points == number


def test_wrong_arguments_are_refused():
    with pytest.raises(ValueError, match=r"fraction must be in \(0, 1\), got 1"):
        forecast([1], [1], [1], fraction=1)
    with pytest.raises(ValueError, match=r"one shape \[N\], got \(2,\), \(1,\) and \(1,\)"):
        forecast([1, 2], [1], [1])


PLAIN = ["ppo_clip(low=0.2, high=0.2, ratio=token_ratio)", "group_centered()", "token_mean()"]


@pytest.mark.parametrize(
    ("changes", "controls"),
    [
        ({"loss_terms": PLAIN}, False),
        ({"loss_terms": [*PLAIN, "critic: value_loss(clip=0.2)"]}, False),
        ({"loss_terms": [*PLAIN, "entropy_bonus(coefficient=0.05)"]}, True),
        ({"loss_terms": [PLAIN[0].replace("high=0.2", "high=0.28"), *PLAIN[1:]]}, True),
        ({"loss_terms": PLAIN, "temperature": 1.2}, True),
        ({"loss_terms": []}, True),
    ],
)
def test_what_acts_on_entropy_is_told_from_the_config(tmp_path, changes, controls):
    run = load_run(write_run(tmp_path / "run", **changes))
    assert controls_entropy(run) == controls


def test_points_are_evaluations_that_have_both_numbers(tmp_path):
    other = write_run(tmp_path / "other", method="clip_cov", every=30)
    with (other / "metrics.jsonl").open("a") as file:
        file.write(json.dumps({"step": 99}) + "\n")
    found = forecast_run(load_run(other))
    assert found.law is None and found.num_points == 3


def test_the_command_prints_runs_without_control_first(tmp_path, capsys):
    paths = [
        write_run(tmp_path / "other", method="clip_cov", every=5),
        write_run(tmp_path / "plain", loss_terms=PLAIN, every=5),
        write_run(tmp_path / "short", loss_terms=PLAIN, every=60),
    ]
    main([str(path) for path in paths])
    lines = capsys.readouterr().out.splitlines()
    plain = forecast_run(load_run(paths[1]))
    assert lines[0] == "without entropy control, 2 runs"
    assert lines[2].split()[:3] == ["3", "of", "13"] and lines[2].endswith("plain")
    assert f"{plain.score_error:+.3f}" in lines[2] and f"{plain.ceiling_error:+.3f}" in lines[2]
    assert "no fit" in lines[3]
    assert f"{abs(plain.score_error):.3f}" in lines[4] and lines[4].endswith("over 1 runs")
    assert lines[5].startswith("with entropy control") and lines[7].endswith("other")
    assert lines[-1] == "1 of 3 fits are undefined"
    with pytest.raises(SystemExit, match="must be a run directory with a config"):
        main([str(tmp_path)])
