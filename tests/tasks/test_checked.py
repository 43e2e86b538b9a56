"""The `verify` of a task from a check."""

import pytest

from rlvr_jax.tasks import Prompt, Response, verifier
from rlvr_jax.verifiers import Check, examine

HERE = "small_checks"


def check(**options):
    return Check(f"{HERE}:equal", f"{HERE}:after_colon", options)


def grades(verify, *texts):
    return verify([Prompt("?", 7)] * len(texts), [Response(text) for text in texts])


@pytest.mark.parametrize("workers", [0, 1])
def test_a_check_grades_in_this_process_and_in_workers(workers):
    right, wrong, none, unknown = grades(
        verifier(check(), workers=workers), "it is: 7", "it is: 8", "no answer", "it is: unknown"
    )
    assert (right.outcome, right.answer, right.info["digits"]) == (1.0, "7", 1.0)
    assert (wrong.outcome, none.outcome, none.answer) == (0.0, 0.0, None)
    assert unknown.outcome is None


def test_options_reach_both_functions():
    shifted = Check(f"{HERE}:equal", f"{HERE}:after_colon", {"offset": -1}, {"mark": "="})
    assert examine(shifted, "x = 8", 7).outcome == 1.0


@pytest.mark.parametrize("where", [{"workers": 1}, {"workers": 0}, {"workers": 0, "threads": 2}])
def test_a_check_that_raises_is_worth_nothing_and_is_counted(where):
    raised, right = grades(verifier(check(), **where), "it is: raise", "it is: 7")
    assert (raised.outcome, raised.info["check_error"]) == (0.0, 1.0)
    assert raised.stage.startswith("error: ") and raised.stage.endswith("Error")
    assert (right.outcome, right.info["check_error"]) == (1.0, 0.0)


def test_a_late_check_is_worth_nothing_and_is_no_error():
    (late,) = grades(verifier(check(), workers=1, wall_seconds=0.3), "it is: late")
    assert (late.outcome, late.timed_out, late.stage) == (0.0, True, "timed out")
    assert late.info == {"check_error": 0.0}


def test_what_the_chat_template_opened_is_part_of_the_response():
    reads = Check(f"{HERE}:equal", f"{HERE}:after_colon", reading={"mark": "<think>"})
    verify = verifier(reads, workers=0)
    (grade,) = verify([Prompt("?", 7)], [Response("7", prompt_tail="<think>\n")])
    assert grade.outcome == 1.0


@pytest.mark.parametrize(("name", "extract"), [("equal", ""), ("a:", ""), ("a:b", ":c")])
def test_a_name_without_a_module_is_refused(name, extract):
    wrong = extract or name
    with pytest.raises(ValueError, match=rf"'module:name', got '{wrong}'"):
        Check(name, extract)


def test_threads_of_this_process_grade_side_by_side_and_in_order():
    verify = verifier(check(), workers=0, threads=4)
    texts = [f"it is: {number}" for number in range(20)]
    assert [grade.outcome for grade in grades(verify, *texts)] == [float(n == 7) for n in range(20)]
