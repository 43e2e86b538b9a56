"""The order of a run's prompts by their outcomes over visits."""

import json

import numpy as np
import pytest

from rlvr_jax.analysis import prompt_order
from rlvr_jax.analysis.prompt_order import (
    historical_variance,
    learning_impact,
    order,
    read_histories,
)

ROUNDING = 1e-12  # float64, sums of a few terms


def written(folder):
    """A run of three steps: prompt 4 rises, 2 is always right, 7 is seen once."""
    lines = [
        {"step": 0, "number": [4, 2], "view": ["plain"] * 2, "outcome": [[0, 0], [1, 1]]},
        {"step": 1, "number": [4, 4], "view": ["plain", "hint"], "outcome": [[1, 0], [1, 1]]},
        {"step": 1, "number": [4, 4], "view": ["plain", "hint"], "outcome": [[1, None], [1, 1]]},
        {"step": 2, "number": [2, 7], "view": ["plain"] * 2, "outcome": [[1, 1], [None, None]]},
        {"step": 3, "number": [7], "view": ["plain"], "outcome": [[0, 1]]},
    ]
    (folder / "outcomes.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def test_a_history_has_every_plain_visit_with_a_verdict(tmp_path):
    assert read_histories(written(tmp_path)) == {2: [1.0, 1.0], 4: [0.0, 1.0], 7: [0.5]}


def test_the_prompt_whose_rate_varies_most_comes_first():
    scores = historical_variance([[1, 1, 1], [0, 1], [0, 0.5, 1], [0, 0]])
    np.testing.assert_allclose(scores, [0, 0.5, np.sqrt(1 / 6), 0], rtol=ROUNDING)
    assert order(scores).tolist() == [1, 2, 0, 3]


def test_the_prompt_that_learns_like_the_pool_comes_first_by_impact():
    # The mean curve is 0.5, 0.5; the last visit of the longer history is cut.
    scores = learning_impact([[0.5, 0.5, 0], [0, 0], [1, 1]])
    np.testing.assert_allclose(scores, [1, 0, 0], atol=ROUNDING)
    np.testing.assert_allclose(learning_impact([[1, 1], [1, 1]]), [1, 1], rtol=ROUNDING)


def test_the_command_prints_the_order(tmp_path, capsys):
    prompt_order.main([str(written(tmp_path))])
    first, _, *rows = capsys.readouterr().out.splitlines()
    assert first == "2 of 3 prompts were sampled 2 times or more"
    assert [row.split()[:3] for row in rows] == [["1", "4", "0.5000"], ["2", "2", "0.0000"]]
    prompt_order.main([str(tmp_path), "--by", "impact", "--least-sampled", "1", "--top", "1"])
    assert len(capsys.readouterr().out.splitlines()) == 3


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["missing"], "run must be a directory with outcomes.jsonl, got"),
        (
            ["--least-sampled", "9"],
            "--least-sampled must be at most 2, got 9",
        ),
        (["--top", "-1"], "--top must be at least 0, got -1"),
    ],
)
def test_what_cannot_be_ordered_is_refused_in_a_sentence(arguments, wanted, tmp_path, capsys):
    run = str(tmp_path / "missing") if arguments == ["missing"] else str(written(tmp_path))
    with pytest.raises(SystemExit):
        prompt_order.main([run, *arguments[arguments == ["missing"] :]])
    assert wanted in capsys.readouterr().err
