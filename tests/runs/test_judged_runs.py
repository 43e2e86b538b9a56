"""Runs with a judge: who may be one, what it costs, and what a resumed run is told."""

import io
import json
import shutil

import judge_server
import numpy as np
import pytest
import training_runs
from everyday import everyday
from rich.console import Console
from training_runs import contents, metrics, quietly, settings, values

from rlvr_jax.analysis.page import embedded_json
from rlvr_jax.runs import parse_config
from rlvr_jax.runs.command import train
from rlvr_jax.runs.hyperparameters import method_arguments
from rlvr_jax.runs.judging import check_criteria, judge_of, judging
from rlvr_jax.runs.resolved import resolve
from rlvr_jax.runs.settings import check_same_run

FAIR = "own_judges:fair"

SHORT = "{response} ="
"""A question that fits into the positions of the smallest policy."""


@pytest.fixture
def prompt(tmp_path):
    path = tmp_path / "prompt.txt"
    path.write_text(SHORT)
    return str(path)


def judged(model, run_dir, judge, **changes):
    small = dict(method="rlbff", judge=judge, steps=2, evaluation_samples=1)
    return settings(model, run_dir, **{**small, **changes})


def samples(run_dir):
    return [
        json.loads(line)
        for path in sorted((run_dir / "samples").glob("*"))
        for line in path.read_text().splitlines()
    ]


@pytest.mark.thorough
def test_a_function_judges_and_its_words_stand_beside_the_samples(model, tmp_path, prompt):
    run_dir = tmp_path / "run"
    config = judged(model, run_dir, "own_judges:longer", judge_prompt=prompt, samples_stored=8)
    quietly(config)
    lines = metrics(run_dir)
    asked = values(lines, "experience/judge_asked")
    assert asked == [16.0, 16.0] and all(told > 0 for told in values(lines, "gradient_norm"))
    for row in samples(run_dir):
        words = len(row["response"].split())
        # A row without a verdict has the mean of its group, and no loss.
        assert not words or row["reward"] == pytest.approx(words / 10)
        assert row["reply"] == (f"so many\n{words}" if words else "nothing there")
    assert "so many" in (run_dir / "report.html").read_text()
    reward = np.mean(values(lines, "info/judge"))
    assert 0 < reward < 0.6


@pytest.mark.parametrize(
    "given, said",
    [
        (dict(method="grpo"), True),
        (dict(method="grpo", mask_truncated=True, dynamic_sampling=2), True),
        (dict(method="rlbff"), False),
        (dict(method="rlbff", mask_truncated=True), False),
        (dict(method="grpo", stage=("rlvr_jax.methods.agents.verltool:mask_void",)), False),
    ],
)
def test_a_method_that_reads_no_rewards_of_the_task_is_said_to_hear_no_judge(
    model, tmp_path, prompt, given, said
):
    config = judged(model, tmp_path / "run", FAIR, judge_prompt=prompt, **given)
    told = training_runs.prepared(config).remarks()
    assert any("judge: no part of --method grpo reads the grades" in line for line in told) == said


@pytest.mark.thorough
@pytest.mark.parametrize("kind", everyday(["policy", "folder"], "folder"))
def test_a_policy_of_this_process_judges(model, tmp_path, prompt, kind):
    judge = "policy" if kind == "policy" else f"folder:{model}"
    run_dir = tmp_path / "run"
    options = ("temperature=1.0", "tries=2", "highest=8")
    quietly(judged(model, run_dir, judge, judge_prompt=prompt, judge_options=options))
    lines = metrics(run_dir)
    undecided = values(lines, "experience/judge_no_verdict")
    assert all(0 < count < 16 for count in undecided), undecided
    assert all(count > 0 for count in values(lines, "experience/judge_tokens"))
    sampled = values(lines, "sampled_tokens")
    own = values(lines, "length")
    # The words of the policy itself are drawn, those of another folder are not the policy's.
    more = [whole - 16 * mean for whole, mean in zip(sampled, own, strict=True)]
    assert all(count > 1 for count in more) if kind == "policy" else np.allclose(more, 0, atol=1e-3)
    assert (run_dir / "judge.jsonl").exists() == (kind == "folder")


@pytest.mark.slow
def test_the_words_of_a_policy_that_judges_itself_have_a_budget_of_their_own(
    model, tmp_path, prompt
):
    run_dir = tmp_path / "run"
    options = ("temperature=1.0", "tokens=12")
    quietly(
        judged(
            model,
            run_dir,
            "policy",
            judge_prompt=prompt,
            judge_options=options,
            response_tokens=3,
            samples_stored=16,
            steps=1,
        )
    )
    rows = samples(run_dir)
    assert max(len(row["response"].split()) for row in rows) <= 3
    assert 3 < max(len(row["reply"].split()) for row in rows) <= 12


@pytest.mark.parametrize(
    "asked, said",
    [
        (
            "Is {response} right?",
            "tokens for all words of the judge.*--judge-prompt again needs no words",
        ),
        ("= " * 40 + "{response}", "positions for the judge's prompt, .* tokens and 4"),
    ],
)
def test_a_policy_that_cannot_read_what_it_is_asked_is_no_judge(model, tmp_path, asked, said):
    path = tmp_path / "prompt.txt"
    path.write_text(asked)
    config = judged(model, tmp_path / "run", "policy", judge_prompt=str(path))
    with pytest.raises(ValueError, match=said):
        training_runs.prepared(config)


@pytest.mark.slow
def test_a_judge_without_any_verdict_is_said_and_gives_no_zeros(model, tmp_path, prompt):
    shown = io.StringIO()
    config = judged(model, tmp_path / "run", "own_judges:broken", judge_prompt=prompt, steps=1)
    train(config, Console(file=shown, width=200))
    assert values(metrics(tmp_path / "run"), "reward") == [None]
    text = shown.getvalue()
    assert "100% of the responses ungraded (OSError: " in text and "reward –" in text
    # What a judge gives the task's own grades do not lack.
    assert "self-check" not in text


@pytest.mark.slow
def test_a_killed_run_goes_on_in_the_same_bytes_without_the_server(
    model, tmp_path, prompt, monkeypatch
):
    changes = dict(judge_prompt=prompt, steps=4, checkpoint_every=2, evaluate_every=4)
    with judge_server.serving() as serving:
        for name, value in serving.environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("OPENAI_API_KEY", "secret")
        quietly(judged(model, tmp_path / "whole", "server:m", **changes))
        assert serving.seen[0][1] == "Bearer secret"
    whole = tmp_path / "whole"
    for path in whole.rglob("*"):
        text = path.read_bytes() if path.is_file() else b""
        assert b"secret" not in text and b"127.0.0.1" not in text, path
    again = tmp_path / "again"
    shutil.copytree(whole, again)
    shutil.rmtree(again / "checkpoints" / "4")
    (again / "summary.json").unlink()
    quietly(judged(model, again, "server:m", resume=True, **changes))
    assert contents(again) == contents(whole)
    assert (again / "judge.jsonl").read_bytes() == (whole / "judge.jsonl").read_bytes()


def test_a_run_keeps_what_its_judge_was_asked_and_is_not_resumed_with_another_question(
    model, tmp_path, prompt
):
    config = judged(model, tmp_path / "run", "own_judges:longer", judge_prompt=prompt)
    card = resolve(config).card()
    assert card["judge_files"] == {"judge_prompt": SHORT}
    check_same_run(card, resolve(config).card())
    (tmp_path / "prompt.txt").write_text("Is it good? {response}")
    with pytest.raises(ValueError, match="file of --judge-prompt must be unchanged"):
        check_same_run(card, resolve(config).card())
    # Older runs kept no questions; those without a judge have none.
    del card["judge_files"]
    check_same_run(card, resolve(config).card())
    assert "judge_files" not in resolve(settings(model, tmp_path / "plain")).card()


@pytest.mark.slow
def test_a_policy_without_words_judges_by_giving_answers_again(tmp_path):
    run_dir = tmp_path / "run"
    line = ["--task", "hinted_brackets", "--method", "rubric_rewards", "--judge", "policy"]
    line += ["--judge-prompt", "again", "--hyperparameters", "weights=1", "--steps", "2"]
    line += ["--prompts-per-step", "8", "--evaluation-prompts", "4", "--evaluation-samples", "2"]
    quietly(parse_config([*line, "--run-dir", str(run_dir)]))
    lines = metrics(run_dir)
    again = values(lines, "info/again")
    assert all(0 < fraction < 1 for fraction in again)
    np.testing.assert_allclose(values(lines, "reward"), again, rtol=1e-5)
    assert all(norm > 0 for norm in values(lines, "gradient_norm"))


def test_a_policy_that_cannot_read_an_answer_is_refused_before_weights_are_read(tmp_path):
    line = ["--task", "brackets", "--method", "rubric_rewards", "--judge", "policy"]
    line += ["--judge-prompt", "again", "--hyperparameters", "weights=1"]
    with pytest.raises(ValueError, match="must have words that the policy's tokenizer knows"):
        quietly(parse_config([*line, "--run-dir", str(tmp_path / "run")]))


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
    # Both orders of a pair are asked; equal questions once.
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
    # The verifier's word is what it was.
    assert np.mean(values(lines, "outcome")) > 0


@pytest.mark.parametrize(
    ("changes", "by"),
    [
        ({"judge": "own_judges:longer"}, "compare_by(column=0)"),
        ({}, "compare_by()"),
        ({"judge": "own_judges:longer", "judge_prompt": "pairs"}, "compare_with("),
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


@pytest.mark.slow
def test_the_budget_of_a_run_ends_and_a_rubric_is_scored(model, tmp_path):
    rubric = tmp_path / "rubric.json"
    rubric.write_text('[{"name": "long", "maximum": 2}, {"name": "kind"}]')
    run_dir = tmp_path / "run"
    config = judged(
        model,
        run_dir,
        "own_judges:fair",
        method="rubric_rewards",
        hyperparameters=("weights=1,3",),
        judge_rubric=str(rubric),
        judge_budget=("calls=5",),
    )
    quietly(config)
    lines = metrics(run_dir)
    assert sum(values(lines, "experience/judge_calls")) == 5
    assert sum(values(lines, "experience/judge_failed/over budget")) > 0
    assert values(lines, "info/judge/long")[0] == 0.75
    assert values(lines, "experience/criterion/1")[0] == 1.0


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


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"judge_rubric": "x"}, "--judge-rubric must come with --judge, got only 'x'"),
        ({"judge": "gpt"}, "judge must be module:function, got 'gpt'"),
        ({"judge": "no_module:f"}, "--judge: no module 'no_module'"),
        ({"judge": "folder:nowhere"}, "folder must be a policy folder, got 'nowhere'"),
        ({"judge": "server:m"}, "OPENAI_BASE_URL must be an address"),
        ({"judge": "policy", "judge_prompt": "nowhere"}, "judge-prompt must be a file"),
        ({"judge": "policy", "judge_rubric": "nowhere"}, "rubric: must be a file"),
        ({"judge": "policy", "judge_options": ("hot=1",)}, "must be among temperature, tries"),
        ({"judge": "policy", "judge_options": ("tries=0",)}, "tries must be at least 1"),
        (
            {"judge": "policy", "judge_options": ("at_once=2", "tries=2")},
            "of judge 'policy' must be among temperature, tokens, .* got at_once$",
        ),
        ({"judge": FAIR, "judge_options": ("tokens=9",)}, "among at_once, .* got tokens$"),
        ({"judge": "policy", "judge_options": ("tokens=0",)}, "tokens must be at least 1, got 0"),
        ({"judge": FAIR, "judge_budget": ("calls=-1",)}, "most_calls must be at least 0"),
        ({"judge": FAIR, "judge_budget": ("euros=1",)}, "must be among calls, tokens"),
        (
            {"judge": "policy", "judge_budget": ("calls=1",)},
            "empty with --judge policy, whose tokens",
        ),
        ({"judge": FAIR, "judge_prompt": "again"}, "must come with the judge policy .*got --judge"),
        (
            {"judge": "policy", "judge_prompt": "again", "judge_options": ("tries=2",)},
            "none of --judge-rubric, .* got --judge 'policy' and --judge-options",
        ),
    ],
)
def test_a_judge_that_cannot_be_made_is_refused(changes, said, monkeypatch, tmp_path):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ValueError, match=said):
        judging(training_runs.settings("unused", tmp_path / "run", **changes))
