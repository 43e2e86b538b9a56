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
    assert "the gold answer 'the answer' is ungraded" in report.problems[0]
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


def test_a_verifier_that_loses_grades_is_refused():
    task = make_task(None, verify=lambda prompts, responses: [])
    with pytest.raises(ValueError, match=r"must return one grade per response \(12\), got 0"):
        self_check(task)


def test_no_prompts_per_kind_is_refused():
    with pytest.raises(ValueError, match="prompts_per_kind must be at least 1, got 0"):
        self_check(load("operators"), 0)


def test_as_many_prompts_are_asked_as_there_is_time_for():
    asked = []

    def reward(prompt, response):
        asked.append(prompt)
        return float(response.text == prompt.gold)

    train = [Prompt(str(i), answer=i, gold=f"answer {i}") for i in range(1000)]
    task = Task("many", train, [Prompt("held out")], graded_one_by_one(reward))
    report = self_check(task, seconds=60.0)
    assert report.kinds[0].num_prompts == 1000 == len(set(asked))
    assert self_check(task, seconds=0.0).kinds[0].num_prompts <= 12
    row = report.kinds[0]
    assert (row.gold, row.truncated, row.empty, row.wrong) == (1, 0, 0, 0)


def test_an_answer_to_another_question_is_shown_where_it_is_paid():
    train = [Prompt(str(i), answer=i, gold=f"answer {i}") for i in range(10)]
    paid = graded_one_by_one(lambda prompt, response: float("answer" in response.text))
    report = self_check(Task("paid", train, [Prompt("held out")], paid))
    assert report.kinds[0].wrong == 1.0
    assert self_check(make_task(lambda prompt, response: 0.0)).kinds[0].wrong is None


def test_a_prompt_may_say_what_is_wrong():
    """Where the answer to another prompt may be right."""
    train = [Prompt(str(i), answer=i, gold="yes", meta={"wrong": "no"}) for i in range(10)]
    paid = graded_one_by_one(lambda prompt, response: float(response.text == "yes"))
    assert self_check(Task("paid", train, [Prompt("held out")], paid)).kinds[0].wrong == 0.0


def test_kinds_without_gold_answers_are_named():
    train = [
        Prompt(f"{kind} {i}", kind=kind, gold={"a": "x"}.get(kind)) for kind in "ab" for i in "12"
    ]
    paid = graded_one_by_one(lambda prompt, response: float(response.text == "x"))
    said = str(self_check(Task("half", train, [Prompt("held out")], paid)))
    assert "  no gold answers are known of b\n" in f"{said}\n"
    assert "no gold answers" not in str(self_check(load("operators"), 2))


def test_the_empty_answer_may_be_the_right_one():
    train = [Prompt(str(i), answer="", gold="") for i in range(3)]
    right = graded_one_by_one(lambda prompt, response: float(response.text == ""))
    assert self_check(Task("empty", train, [Prompt("held out")], right)).problems == ()


def test_many_problems_are_counted():
    report = self_check(make_task(lambda prompt, response: 0.0))
    assert len(report.problems) == 5
    assert report.problems[-1] == "kind '': and 6 more like these."
