"""Problems that a policy writes: how they are read, and what those who write them earn."""

import numpy as np
import pytest

from rlvr_jax.experience.stages.problems.written import problem_in
from rlvr_jax.methods.self_play.absolute_zero import (
    composed_proposer_reward,
    composed_solver_reward,
    learnability,
)
from rlvr_jax.methods.self_play.ssp import parabola
from rlvr_jax.methods.self_play.svs import within_band
from rlvr_jax.tasks import load, lookup
from rlvr_jax.tasks.base import Prompt, Response, Task
from rlvr_jax.tasks.hinted_brackets import hinted_brackets, read_problem


def test_a_problem_is_what_stands_in_the_last_fence():
    task = Task("t", [Prompt("a", answer=7, solution=("s",))], [Prompt("held out")], None)
    (prompt,) = task.train
    text = "First ```text\nno\n``` then ```text\nWhat is 3 + 4?\n```"
    found = problem_in(prompt, text, task)
    assert found.text == "What is 3 + 4?" and found.answer == 7 and not found.solution
    assert problem_in(prompt, "What is 3 + 4?", task) is None
    assert problem_in(prompt, "```text\n\n```", task) is None
    assert problem_in(prompt, "```text\nheld out\n```", task) is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("( 5 + 2 = 7 ) * 4 = 28", "5 2 4 28 >"),
        ("3 - 1 = 2 ; 5 + ( 2 * 4 = 8 ) = 13", "5 2 4 13 >"),
        ("( 5 + 2 = 9 ) * 4 = 1", "5 2 4 1 >"),
        ("( 5 + 2 = 9 ) * 4 = 100", None),
        ("( 5 + 20 = 25 ) * 4 = 28", None),
        ("( 5 + 2 = 7", None),
        ("", None),
    ],
)
def test_an_attempt_states_its_numbers_and_what_it_comes_to(text, problem):
    found = read_problem(Prompt("3 9 4 15 >", answer=[3, 9, 4, 15]), text)
    assert (found and found.text) == problem
    assert found is None or found.answer == [int(word) for word in problem.split()[:4]]


def test_problems_of_brackets_are_graded_as_those_of_the_task():
    task = hinted_brackets(train=16)
    problem = read_problem(task.train[0], "( 5 + 2 = 7 ) * 4 = 28")
    correct, incorrect = task.verify(
        [problem] * 2, [Response("( 5 + 2 = 7 ) * 4 = 28"), Response("( 5 + 2 = 7 ) - 4 = 3")]
    )
    assert (correct.outcome, incorrect.outcome) == (1, 0) and problem.kind == "easy"


def test_those_who_write_earn_by_how_rarely_they_are_solved():
    rates = np.array([0.0, 0.25, 1.0])
    assert learnability(rates).tolist() == [0, 0.75, 0]
    assert parabola(rates).tolist() == [0, 0.75, 0]
    assert within_band(np.array([3 / 10, 0.625]), 0.3, 0.625).all()
    good = np.array([True, True, False])
    assert composed_proposer_reward(learnability(rates), good, -0.5, -1.0).tolist() == [
        -0.5,
        0.75,
        -1,
    ]
    correct = np.array([True, False, True])
    assert composed_solver_reward(correct, good, -0.5, -1.0).tolist() == [1, -0.5, -1]


QUESTION = "Which river runs through the old town that lies below the castle?"


def test_a_question_of_lookup_is_to_be_answered_by_searching():
    prompt = load("lookup:people=40,size=32,test_size=8").train[0]
    found = lookup.read_problem(prompt, f"thought ```text\n{QUESTION}\n``` end")
    assert found.text.startswith(QUESTION) and "<search>" in found.text
    assert (found.answer, found.gold) == (prompt.answer, prompt.gold)
    assert found.meta["question"] == QUESTION
    assert lookup.read_problem(prompt, "no question") is None
