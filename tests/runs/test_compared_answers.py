"""Runs whose judge compares two answers, or rates criteria."""

import shutil

import numpy as np
import pytest
import training_runs
from everyday import everyday
from judged_runs import FAIR, judged, samples
from training_runs import contents, metrics, quietly, settings, values

from rlvr_jax.analysis.page import embedded_json
from rlvr_jax.runs.hyperparameters import method_arguments
from rlvr_jax.runs.judging import check_criteria, judge_of
from rlvr_jax.runs.resolved import resolve


@pytest.mark.thorough
@pytest.mark.parametrize("method", everyday(["arena_rl", "think_rm"], "think_rm"))
def test_a_judge_compares_two_answers(model, tmp_path, method):
    prompt, run_dir = tmp_path / "prompt.txt", tmp_path / "run"
    prompt.write_text("|{response}\n|{other}\n")
    quietly(
        judged(
            model,
            run_dir,
            "own_judges:wordier",
            method=method,
            judge_prompt=str(prompt),
            hyperparameters=(),
        )
    )
    lines = metrics(run_dir)
    assert all(pairs > 0 for pairs in values(lines, "experience/compared_pairs"))
    assert values(lines, "experience/unreadable_pairs") == [0, 0]
    # A judge reads both orders of a pair, and equal questions once.
    assert all(asked > 0 for asked in values(lines, "experience/judge_calls"))
    assert all(norm > 0 for norm in values(lines, "gradient_norm"))
    assert (run_dir / "judge.jsonl").exists()


@pytest.mark.slow
def test_what_was_said_of_two_answers_stands_beside_the_samples(model, tmp_path):
    prompt, whole, again = tmp_path / "prompt.txt", tmp_path / "whole", tmp_path / "again"
    prompt.write_text("|{response}\n|{other}\n")
    changes = dict(method="think_rm", judge_prompt=str(prompt), samples_stored=8, steps=4)
    changes |= dict(checkpoint_every=2, evaluate_every=4)
    quietly(judged(model, whole, "own_judges:wordier", **changes))
    rows = samples(whole)
    for row in rows:
        # All against all of a group of 4, in both orders.
        assert len(row["compared"]) == 6
        assert [own["first"] for own in row["compared"]].count(True) == 3
        first = row["row"] - row["row"] % 4
        others = sorted(2 * [*range(first, row["row"]), *range(row["row"] + 1, first + 4)])
        assert sorted(own["other"] for own in row["compared"]) == others
        for own in row["compared"]:
            scores = [1 + len(text.split()) for text in (row["response"], own["response"])]
            assert own["scores"] == scores
            one, two = scores if own["first"] else scores[::-1]
            assert own["words"] == f"so\n{one}, {two}"
    own = rows[0]["compared"][0]
    place = "before" if own["first"] else "after"
    told = f"judge, {place} row {own['other']} “{own['response']}”, "
    told += f"{own['scores'][0]:g} to {own['scores'][1]:g}: {' '.join(own['words'].split())}"
    assert embedded_json(told) in (whole / "report.html").read_text()
    shutil.copytree(whole, again)
    shutil.rmtree(again / "checkpoints" / "4")
    (again / "summary.json").unlink()
    quietly(judged(model, again, "own_judges:wordier", resume=True, **changes))
    assert contents(again) == contents(whole)


def test_two_answers_are_refused_where_none_are_compared(model, tmp_path):
    config = judged(model, tmp_path / "run", FAIR, judge_prompt="pairs")
    with pytest.raises(ValueError, match="judge-prompt must show one response for method 'rlbff'"):
        quietly(config)


def test_a_broken_judge_is_no_verdict_and_no_reward(model, tmp_path):
    run_dir = tmp_path / "run"
    quietly(judged(model, run_dir, "own_judges:broken"))
    lines = metrics(run_dir)
    assert values(lines, "experience/judge_failed/OSError") == values(
        lines, "experience/judge_asked"
    )
    assert values(lines, "experience/rows_without_reward") == [16.0, 16.0]
    assert values(lines, "gradient_norm") == [0.0, 0.0]
    # The verifier's outcome is unchanged.
    assert np.mean(values(lines, "outcome")) > 0


@pytest.mark.parametrize(
    ("changes", "by"),
    [
        ({"judge": "own_judges:longer"}, "compare_by(column=0)"),
        ({}, "compare_by()"),
        ({"judge": "own_judges:longer", "judge_prompt": "pairs"}, "compare_with("),
        (
            {"judge": "own_judges:longer", "judge_prompt": "strength"},
            "compare_with(asked=Judge(first, second), both_orders=False",
        ),
        (
            {"judge": "own_judges:longer", "method": "grpo", "experience": "think_rm"},
            "compare_by(column=0)",
        ),
    ],
)
def test_answers_are_compared_by_what_a_judge_says_of_each(model, tmp_path, changes, by):
    config = settings(model, tmp_path / "run", **{"method": "think_rm", **changes})
    recipe = resolve(config).recipe
    (label,) = [label for label in recipe.experience.labels if label.startswith("tournament")]
    assert f"tournament(compare={by}" in label


def test_a_rubric_does_not_compare(model, tmp_path):
    rubric = tmp_path / "rubric.json"
    rubric.write_text('[{"name": "long"}, {"name": "kind"}]')
    config = judged(model, tmp_path / "run", FAIR, method="arena_rl", judge_rubric=str(rubric))
    with pytest.raises(ValueError, match=r"judge-rubric must have one criterion .* got 2"):
        quietly(config)


@pytest.mark.thorough
@pytest.mark.parametrize("method", everyday(["arena_rl", "think_rm"], "arena_rl"))
def test_answers_that_nobody_could_compare_have_no_reward(model, tmp_path, method):
    prompt, run_dir = tmp_path / "prompt.txt", tmp_path / "run"
    prompt.write_text("|{response}\n|{other}\n")
    quietly(judged(model, run_dir, "own_judges:broken", method=method, judge_prompt=str(prompt)))
    lines = metrics(run_dir)
    # Every place in a knockout is another one: without this rows would be ranked by their order.
    assert values(lines, "experience/rows_without_reward") == [16.0, 16.0]
    assert values(lines, "gradient_norm") == [0.0, 0.0]


TWO = '[{"name": "right", "weight": 2}, {"name": "short", "kind": "%s"}]'


@pytest.mark.parametrize(
    ("method", "hyperparameters", "kind", "said"),
    [
        ("rubric_rewards", ("weights=2,1",), "plain", ""),
        ("rubric_rewards", ("weights=2,1", "veto=1"), "veto", ""),
        ("rgr_grpo", ("weights=2,1", "factual=1"), "factual", ""),
        # Three by default: the third would be a reward of the task.
        ("rubric_rewards", (), "plain", r"weights=2,1 does, got \(2.0, 1.0, 1.0\)"),
        ("rubric_rewards", ("weights=1,2",), "plain", "weights=2,1 does, got"),
        ("rubric_rewards", ("weights=2,1",), "veto", "veto=1 does, got none"),
        ("rlbff", (), "plain", "weights=2,1 does, got none"),
    ],
)
def test_a_rubric_says_what_the_method_does(tmp_path, method, hyperparameters, kind, said):
    path = tmp_path / "rubric.json"
    path.write_text(TWO % kind)
    config = training_runs.settings(
        "unused", tmp_path / "run", method=method, hyperparameters=hyperparameters
    )
    arguments = method_arguments(config)
    if not said:
        return check_criteria(str(path), method, arguments)
    with pytest.raises(ValueError, match=f"of {method} must fit the 2 criteria of .*{said}"):
        check_criteria(str(path), method, arguments)


def test_soft_constraints_are_asked_of_what_follows_the_thinking(tmp_path):
    config = training_runs.settings(
        "unused", tmp_path, judge=FAIR, judge_prompt="constraints", judge_options=("tries=1",)
    )
    asked, _ = judge_of(config, None)
    said = {"prompt": "p", "reference": "", "meta": {"soft": ["be kind"]}}
    for response, shown in (("<think>secret</think>Hello", "Hello"), ("Hello", "Hello")):
        (message,) = asked.prompt_of(response=response, **said)
        assert f"Answer:\n{shown}\n" in message["content"]
        assert "secret" not in message["content"]
    assert asked.prompt_of(response="Hello", **said | {"meta": {}}) == ()
