"""The experiment with a calculator: its questions, and a run of both arms on a tiny policy."""

import pytest
import training_runs

from experiments import tools
from rlvr_jax.analysis.run_directory import read_json_lines
from rlvr_jax.tasks import Response


def test_traces_are_right_and_the_calculator_agrees_with_them():
    task = tools.questions(calls=1.0, train=40, test=8)
    assert {prompt.kind for prompt in task.train} == set(tools.KINDS)
    for prompt in (*task.train, *task.test):
        call, answer = prompt.solution
        reply = task.environment.reply(task.environment.start(prompt)[0], call)
        assert reply.text == f" = {answer}\n" and answer == str(prompt.answer) == prompt.gold
    assert all(len(prompt.solution) == 1 for prompt in tools.questions(calls=0.0).train)
    some = [len(prompt.solution) - 1 for prompt in tools.questions(train=400).train]
    assert 0.4 < sum(some) / len(some) < 0.6


@pytest.mark.parametrize(
    ("text", "outcome", "calls"),
    (
        ("<calc>12 + 30</calc> = 42\nIt is 42.", 1, 1),
        # What the calculator says is not yet an answer.
        ("<calc>12 + 30</calc> = 42\n", 0, 1),
        ("42", 1, 0),
        ("43", 0, 0),
        ("", 0, 0),
    ),
)
def test_what_the_policy_wrote_last_is_graded(text, outcome, calls):
    prompt = tools.Prompt("What is 12 plus 30?", 42)
    (grade,) = tools.verify([prompt], [Response(text)])
    assert grade.outcome == outcome and grade.info["calls"] == calls


def test_an_arm_that_is_none_is_refused(tmp_path):
    with pytest.raises(ValueError, match="arms must be among calculator, alone, got 'abacus'"):
        tools.main(["--arms", "abacus", "--run-dir", str(tmp_path / "runs")])


@pytest.mark.slow
def test_both_arms_run_and_are_laid_side_by_side(tmp_path, capsys, monkeypatch):
    words = ["What", "is", "plus", "times", "<calc>", "</calc>", "?", "*"]
    words += [f"{number}{end}" for number in range(1000) for end in ("", "?")]
    words = dict.fromkeys([*training_runs.WORDS, *words])
    monkeypatch.setattr(training_runs, "WORDS", list(words))
    monkeypatch.setenv("COLUMNS", "200")
    policy = training_runs.write_policy(tmp_path / "policy", max_positions=128)
    small = "--traces 8 --prompts-per-step 2 --samples-per-prompt 4 --sampled-tokens 300"
    small += " --evaluation-prompts 4 --evaluation-samples 2 --jobs 1"
    place = ["--model", str(policy), "--run-dir", str(tmp_path / "runs")]
    tools.main([*place, *small.split()])
    assert "three digit product" in capsys.readouterr().out
    for arm in tools.ARMS:
        warm = read_json_lines(tmp_path / "runs" / arm / "warm" / "metrics.jsonl")
        assert sum(line.get("experience/imitated_solutions", 0) for line in warm) == 8
        assert warm[-1]["imitated_tokens"] > 0
        assert (tmp_path / "runs" / arm / "report.html").is_file()
