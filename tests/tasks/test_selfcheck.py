"""The check before the first step finds verifiers that never pay, and those that always do."""

import pytest

from rlvr_jax.tasks import Grade, Prompt, Task, graded_one_by_one, load, self_check


def make_task(reward, gold="the answer", kinds=("",), verify=None):
    train = [Prompt(f"{kind} {i}", kind=kind, gold=gold) for kind in kinds for i in range(10)]
    verify = verify or graded_one_by_one(reward)
    return Task("checked", train, [Prompt("held out")], verify)


@pytest.mark.parametrize("name", ("brackets", "operators", "arithmetic"))
def test_built_in_tasks_have_no_problems(name):
    report = self_check(load(name))
    assert report.problems == ()
    assert {row.kind for row in report.kinds} == {prompt.kind for prompt in load(name).train}
    assert all((row.gold, row.truncated, row.empty) == (1, 0, 0) for row in report.kinds)


def test_a_gold_that_is_not_read_is_a_problem():
    report = self_check(make_task(lambda prompt, response: 0.5 * bool(response.text)), 2)
    assert len(report.problems) == 2
    assert "the gold answer 'the answer' scores 0.5 and not 1" in report.problems[0]
    assert "PROBLEM: " in str(report)


def test_paying_for_the_empty_answer_is_a_problem():
    report = self_check(make_task(lambda prompt, response: 1.0), 3)
    assert len(report.problems) == 3
    assert "the empty answer scores 1 and not 0" in report.problems[0]


def test_the_half_answer_is_shorter_and_marked_as_cut_off():
    seen = []

    def reward(prompt, response):
        seen.append((response.text, response.truncated))
        return float(response.text == "the answer")

    report = self_check(make_task(reward), 1)
    assert ("the a", True) in seen
    assert report.kinds[0].truncated == 0


def test_a_timed_out_grade_is_a_problem():
    def verify(prompts, responses):
        return [Grade(0.0, timed_out=response.text == "") for response in responses]

    problems = self_check(make_task(None, gold=None, verify=verify), 1).problems
    assert len(problems) == 1
    assert "grading the empty answer timed out" in problems[0]


def test_a_gold_without_a_verdict_is_shown_as_such():
    def verify(prompts, responses):
        return [Grade(None if response.text == "the answer" else 0.0) for response in responses]

    report = self_check(make_task(None, verify=verify), 2)
    assert [(row.num_golds, row.gold, row.empty) for row in report.kinds] == [(2, None, 0)]
    assert len(report.problems) == 2
    assert "the gold answer 'the answer' has no verdict" in report.problems[0]
    assert "      -   0.00" in str(report)


def test_kinds_are_reported_apart_and_prompts_without_gold_are_no_problem():
    task = make_task(lambda prompt, response: 0.0, gold=None, kinds=("easy", "hard"))
    report = self_check(task, 4)
    assert [(row.kind, row.num_prompts, row.num_golds) for row in report.kinds] == [
        ("easy", 4, 0),
        ("hard", 4, 0),
    ]
    assert all(row.gold is None and row.seconds_per_grade > 0 for row in report.kinds)
    assert report.problems == ()


def test_more_prompts_are_looked_at_as_long_as_there_is_time():
    """A gold that one question in a hundred does not pay is found."""
    train = [Prompt(str(i), gold="no" if i == 57 else "yes") for i in range(400)]
    verify = graded_one_by_one(lambda prompt, response: float(response.text == "yes"))
    task = Task("long", train, [Prompt("held out")], verify)
    report = self_check(task)
    assert report.kinds[0].num_prompts == 400
    assert len(report.problems) == 1
    assert report.problems[0].startswith("'57' the gold answer 'no' scores 0")
    assert self_check(task, 4).problems == ()
    assert self_check(task, seconds=0).kinds[0].num_prompts == 4


def test_many_problems_of_one_kind_are_counted():
    report = self_check(make_task(lambda prompt, response: 1.0, gold=None))
    assert len(report.problems) == 5
    assert report.problems[-1] == "kind '': 6 problems more like these."


def test_a_verifier_that_loses_grades_is_refused():
    task = make_task(None, verify=lambda prompts, responses: [])
    with pytest.raises(ValueError, match="must give one grade per response, got 0 for 12"):
        self_check(task)


def test_no_prompts_per_kind_is_refused():
    with pytest.raises(ValueError, match="prompts_per_kind must be at least 1, got 0"):
        self_check(load("operators"), 0)
