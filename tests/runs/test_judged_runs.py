"""Runs with a judge: which judges are accepted, and what they cost."""

import io
import shutil

import judge_server
import numpy as np
import pytest
import training_runs
from everyday import everyday
from judged_runs import FAIR, judged, samples
from rich.console import Console
from training_runs import contents, metrics, quietly, settings, values

from rlvr_jax.runs import parse_config
from rlvr_jax.runs.command import train
from rlvr_jax.runs.judging import judging
from rlvr_jax.runs.resolved import resolve
from rlvr_jax.runs.settings import check_same_run

SHORT = "{response} ="
"""A question that fits into the positions of the smallest policy."""


@pytest.fixture
def prompt(tmp_path):
    path = tmp_path / "prompt.txt"
    path.write_text(SHORT)
    return str(path)


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
