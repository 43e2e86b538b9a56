"""Reward functions of ours, of TRL and of verl, and sentences about those that fail."""

import asyncio
import json
import math
import sys

import numpy as np
import pytest

from rlvr_jax.tasks import (
    Grade,
    GradingError,
    Prompt,
    Response,
    Task,
    from_rows,
    from_trl,
    from_verl,
    graded_one_by_one,
    grades_of,
    no_verdict_on_error,
)
from rlvr_jax.tasks.grading import verifier_name

ROWS = [{"prompt": f"{i} + 1?", "solution": str(i + 1), "extra_info": {"i": i}} for i in range(4)]


def task_of(verify):
    return Task("own", [Prompt("a", "1"), Prompt("b", "2")], [Prompt("c")], verify)


def asked(task, *texts):
    prompts = [task.train[row % len(task.train)] for row in range(len(texts))]
    return grades_of(task, prompts, [Response(text) for text in texts])


# What follows is written as users of TRL write it.
def accuracy(completions, solution, **kwargs):
    return [float(text == wanted) for text, wanted in zip(completions, solution, strict=True)]


def in_messages(prompts, completions, **kwargs):
    assert all(prompt[-1]["role"] == "user" for prompt in prompts)
    return [1.0 if completion[0]["content"] == "yes" else -0.5 for completion in completions]


def by_answer(completions, answer):
    return np.array([text == wanted for text, wanted in zip(completions, answer, strict=True)])


def sometimes(completions):
    return [None if text == "?" else 0.25 for text in completions]


async def awaited(completions, **kwargs):
    return [float(text == "yes") for text in completions]


async def awaited_score(solution_str, ground_truth):
    return float(solution_str == ground_truth)


def length(completions):
    return [len(text) for text in completions]


def of_long(completions):
    return [None if len(text) < 3 else -0.5 for text in completions]


async def later(completions, **kwargs):
    return [1.0 for _ in completions]


@pytest.mark.parametrize(
    ("functions", "weights", "rewards", "info"),
    [
        # of the answers "1", "2" and "long" to the questions whose answers are 1, 2 and 1
        (
            [by_answer, length],
            [1, 0.5],
            [1.5, 1.5, 2],
            {"by_answer": [1, 1, 0], "length": [1, 1, 4]},
        ),
        ([by_answer, length], None, [2, 2, 4], {"by_answer": [1, 1, 0], "length": [1, 1, 4]}),
        ((length,), [-2.0], [-2, -2, -8], {"length": [1, 1, 4]}),
        ([by_answer, of_long], [1, 1], [1, 1, -0.5], {"of_long": [math.nan, math.nan, -0.5]}),
        ([of_long, of_long], [1, 3], [None, None, -2], {"of_long_2": [math.nan, math.nan, -0.5]}),
        (
            [later, sometimes],
            [0, 2],
            [0.5, 0.5, 0.5],
            {"later": [1, 1, 1], "sometimes": [0.25] * 3},
        ),
    ],
)
def test_rewards_of_several_functions_are_weighed_and_each_is_a_curve(
    functions, weights, rewards, info
):
    verify = from_trl(functions, weights=weights)
    grades = asked(task_of(verify), "1", "2", "long")
    assert [grade.reward for grade in grades] == rewards
    for name, numbers in info.items():
        np.testing.assert_equal([grade.info[name] for grade in grades], numbers)
        assert name in verify.rewards
    outcomes = [None if x is None else min(max(x, 0.0), 1.0) for x in rewards]
    assert [grade.outcome for grade in grades] == outcomes


def test_several_functions_are_the_rewards_of_a_task_of_rows():
    rows = [{"prompt": f"{i}?", "answer": i} for i in range(4)]
    task = from_rows(rows, verify=from_trl([by_answer, length], weights=[1, 0.5]))
    assert task.rewards == ("by_answer", "length")
    assert no_verdict_on_error(task.verify).rewards == task.rewards
    assert from_rows(rows, verify=from_trl(length)).rewards == ()


@pytest.mark.parametrize(
    ("make", "wrong"),
    [
        (lambda: from_trl([]), "reward must have at least one function, got none"),
        (lambda: from_trl([length, "a/model"]), "reward must be one function, got 'a/model'"),
        (
            lambda: from_trl([length], weights=[1, 2]),
            r"weights must be 1 finite .*length.*\[1, 2\]",
        ),
        (lambda: from_trl([length, accuracy], weights=[1]), "weights must be 2 finite numbers"),
        (lambda: from_trl(length, weights=[math.inf]), r"weights must be 1 finite .*\[inf\]"),
        (lambda: from_trl([length], weights="a"), "weights must be 1 finite numbers"),
        (lambda: from_trl([length], weights=2), "weights must be 1 finite numbers"),
    ],
)
def test_wrong_lists_of_rewards_are_named(make, wrong):
    with pytest.raises(ValueError, match=wrong):
        make()


@pytest.mark.parametrize(
    ("told", "keys"),
    [
        ({"acc": 1.0, "reward": 1.0}, "acc, reward"),
        ({"Score": 1.0}, "Score"),
        ({"pred": "3"}, "pred"),
        ({"scores": [1.0]}, "scores"),
        ({}, "no key"),
        ({1: 2.0}, "1"),
    ],
)
def test_a_dictionary_without_a_score_is_an_error_that_lists_its_keys(told, keys):
    task = task_of(from_verl(lambda solution_str: told))
    with pytest.raises(GradingError, match=f'must have the reward as "score", got {keys}$'):
        asked(task, "x")
    with pytest.raises(GradingError, match='as "score"'):
        asked(task_of(from_verl(lambda **kwargs: dict(told))), "x", "y")


def test_a_score_of_none_is_no_verdict():
    (grade,) = asked(task_of(from_verl(lambda solution_str: {"score": None, "acc": 1.0})), "x")
    assert (grade.outcome, grade.reward) == (None, None)


@pytest.mark.parametrize("outcome", [3.0, -1, 1.01, -0.001, math.inf, -math.inf, np.float32(2)])
def test_an_outcome_outside_of_0_to_1_is_refused(outcome):
    with pytest.raises(
        ValueError, match=r"outcome must be in \[0, 1\], got .*. For a reward of another"
    ):
        Grade(outcome)
    assert Grade(1.0, float(outcome)).reward == outcome


@pytest.mark.parametrize(
    ("outcome", "kept"), [(1 + 1e-9, 1.0), (-1e-9, 0.0), (True, 1.0), (0.5, 0.5)]
)
def test_an_outcome_may_have_a_rounding_error(outcome, kept):
    assert Grade(outcome).outcome == kept


def test_a_verify_that_gives_such_an_outcome_is_told_where():
    task = task_of(lambda prompts, responses: [Grade(len(r.text)) for r in responses])
    with pytest.raises(GradingError, match=r"outcome must be in \[0, 1\], got 3.*'abc'"):
        asked(task, "a", "abc")


def test_a_number_of_one_prompt_and_response_is_cut_for_the_outcome():
    task = task_of(graded_one_by_one(lambda prompt, response: 3.0 - len(response.text)))
    assert [(g.outcome, g.reward) for g in asked(task, "", "aaaa")] == [(1, 3), (0, -1)]


def test_coroutines_are_run_in_a_notebook_too():
    async def cell():
        return [grade.outcome for grade in asked(task, *texts)]

    for task, texts in [
        (task_of(from_trl(awaited)), ("yes", "no")),
        (task_of(from_verl(awaited_score)), ("1", "1")),
    ]:
        assert [grade.outcome for grade in asked(task, *texts)] == [1, 0]
        assert asyncio.run(cell()) == [1, 0]


def test_what_can_be_counted_through_is_a_list_of_rewards():
    task = task_of(from_trl(lambda completions: (float(text == "yes") for text in completions)))
    assert [grade.outcome for grade in asked(task, "yes", "no")] == [1, 0]


def test_a_reward_of_trl_gets_completions_and_columns():
    task = from_rows(ROWS, held_out=0.3, verify=from_trl(accuracy))
    right = task.train[0].meta["solution"]
    assert [grade.outcome for grade in asked(task, right, "x")] == [1, 0]
    assert verifier_name(task.verify) == "accuracy"


def test_a_conversational_reward_of_trl_gets_messages_and_may_be_negative():
    grades = asked(task_of(from_trl(in_messages, conversational=True)), "yes", "no")
    assert [(grade.outcome, grade.reward) for grade in grades] == [(1, 1), (0, -0.5)]


def test_the_prompts_answer_is_a_column_and_arrays_are_lists():
    assert [grade.outcome for grade in asked(task_of(from_trl(by_answer)), "1", "1")] == [1, 0]


def test_a_reward_of_trl_that_does_not_apply_is_no_verdict():
    assert [g.outcome for g in asked(task_of(from_trl(sometimes)), "a", "?")] == [0.25, None]


@pytest.mark.parametrize(
    ("reward", "message"),
    (
        (lambda completions: [1.0], r"must return a list of 2 numbers, .* got \[1.0\]"),
        (lambda completions: 1.0, "must return a list of 2 numbers, .* got 1.0"),
        (lambda completions: "ab", "must return a list of 2 numbers, .* got 'ab'"),
        (lambda completions: [1.0, "1"], "must be a finite number, got '1' for prompt 'b' and res"),
        (
            lambda completions, image: [],
            r"columns of the data \(answer, .*\), got image. from_rows",
        ),
        (lambda answers: [], "got answers. from_rows"),
        (
            lambda completions, completion_ids, trainer_state: [],
            "must not require columns of the trainer .*, got completion_ids, trainer_state$",
        ),
    ),
)
def test_what_is_wrong_with_a_reward_of_trl_is_said(reward, message):
    with pytest.raises(GradingError, match=message):
        asked(task_of(from_trl(reward)), "x", "y")


# And this as users of verl do.
def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    assert (data_source, extra_info) == ("lab/set", {"i": int(ground_truth) - 1})
    return 1.0 if solution_str == ground_truth else 0.0


def scored_with_more(data_source, solution_str, ground_truth, extra_info=None, **kwargs):
    right = solution_str == ground_truth
    return {"score": 1.0 if right else -1.0, "acc": right, "pred": solution_str, "length": 3}


def test_a_score_of_verl_gets_what_the_rows_say():
    rows = [
        {
            "data_source": "lab/set",
            "prompt": [{"role": "user", "content": row["prompt"]}],
            "reward_model": {"ground_truth": row["solution"]},
            "extra_info": row["extra_info"],
        }
        for row in ROWS
    ]
    task = from_rows(rows, verify=from_verl(compute_score))
    assert [g.outcome for g in asked(task, task.train[0].answer, "x")] == [1, 0]
    assert (task.train[0].kind, task.train[0].text) == ("lab/set", "0 + 1?")


def test_a_score_of_verl_with_more_tells_reward_outcome_answer_and_numbers():
    right, wrong = asked(task_of(from_verl(scored_with_more)), "1", "1")
    assert (right.outcome, right.reward, right.answer, right.info) == (1, 1, "1", {"length": 3})
    assert (wrong.outcome, wrong.reward) == (0, -1)


@pytest.mark.parametrize("score", ["1", None, math.nan, {"score": "x"}, [1]])
def test_a_score_that_is_no_number_is_said_or_no_verdict(score):
    task = task_of(from_verl(lambda solution_str, ground_truth: score))
    if score is None:
        assert asked(task, "x")[0].outcome is None
        return
    with pytest.raises(GradingError, match=r"must be a finite number, got .* for prompt 'a'"):
        asked(task, "x")


def fails_on_seven(prompt, response):
    return 1 / (7 - int(response.text))


@pytest.mark.parametrize(
    "verify",
    (
        graded_one_by_one(fails_on_seven),
        from_verl(lambda solution_str, ground_truth: 1 / (7 - int(solution_str))),
        from_trl(lambda completions: [1 / (7 - int(text)) for text in completions]),
        lambda prompts, responses: (Grade(1 / (7 - int(r.text))) for r in responses),
    ),
    ids=["one by one", "verl", "trl", "generator"],
)
def test_a_reward_that_raises_is_told_with_prompt_response_and_place(verify):
    task = task_of(verify)
    assert [grade.outcome for grade in asked(task, "6", "6")] == [1, 1]
    said = r"^task 'own': verify raised ZeroDivisionError: .* \(test_rewards.py, line \d+, in .*\)"
    with pytest.raises(GradingError, match=said + " for prompt 'b' and response '7'. --failed-"):
        asked(task, "6", "7", "x")
    tolerant = task_of(no_verdict_on_error(verify))
    assert [g.outcome for g in asked(tolerant, "6", "7", "5", "x")] == [1, None, 0.5, None]
    assert asked(tolerant, "7")[0].stage == "raised"


def test_a_verifier_that_raises_for_a_batch_alone_is_told_as_such():
    def verify(prompts, responses):
        if len(prompts) > 1:
            raise KeyError("batch")
        return [Grade(0.0)]

    with pytest.raises(GradingError, match=r"raised KeyError: 'batch' .* for one of 2 responses"):
        asked(task_of(verify), "x", "y")


def ends_the_process(prompt, response):
    sys.exit("no server")


def reads_json(prompt, response):
    return json.loads(response.text)["score"]


@pytest.mark.parametrize(
    ("reward", "said"),
    [
        (ends_the_process, "raised SystemExit: no server"),
        (reads_json, "raised JSONDecodeError: Expecting value: line 1 column 1"),
    ],
)
def test_the_place_is_in_the_users_file_and_a_reward_that_exits_has_raised(reward, said):
    task = task_of(graded_one_by_one(reward))
    place = rf".* \(test_rewards.py, line \d+, in {reward.__name__}\) for prompt 'a' and"
    with pytest.raises(GradingError, match=said + place):
        asked(task, "x")
    assert asked(task_of(no_verdict_on_error(task.verify)), "x")[0].outcome is None


def test_a_list_of_scores_is_no_score():
    with pytest.raises(ValueError, match=r"from_verl: compute_score must be one function, got \["):
        from_verl([accuracy])


def test_long_texts_are_shortened_in_sentences():
    with pytest.raises(GradingError) as told:
        asked(task_of(graded_one_by_one(fails_on_seven)), "x" * 100_000)
    assert len(str(told.value)) < 700


@pytest.mark.parametrize(
    ("given", "message"),
    (
        (
            [0.5, 1.0],
            r"one Grade per response, got 0.5. Use graded_one_by_one, from_trl or from_verl",
        ),
        (0.5, "one Grade per response, got 0.5."),
        (None, "one Grade per response, got None."),
        ("ab", "one Grade per response, got 'a'."),
        ([Grade(1.0)], r"one grade per response \(2\), got 1"),
        (iter([Grade(1.0)] * 3), r"one grade per response \(2\), got 3"),
    ),
)
def test_what_a_verifier_gives_in_the_place_of_grades_is_said(given, message):
    with pytest.raises(GradingError, match=f"task 'own': verify must return {message}"):
        asked(task_of(lambda prompts, responses: given), "x", "y")
