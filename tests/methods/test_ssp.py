"""SSP: the policy writes questions to given answers, and earns more the less often it solves
them.
"""

import dataclasses
from types import SimpleNamespace

import jax
import numpy as np
import pytest
import training_runs
from walks import of_cell, walked

from rlvr_jax.experience import StepContext, experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.laws.numbered_task import numbered_task
from rlvr_jax.experience.stages.problems.written import SOLVE, WRITE, read_stored, stored
from rlvr_jax.methods import recipe
from rlvr_jax.methods.self_play.ssp import _answered, _passages, is_question, question_to
from rlvr_jax.objectives import TOOL
from rlvr_jax.tasks import load, lookup
from rlvr_jax.tasks.base import Prompt

QUESTION = "Which river runs through the old town that lies below the castle?"


@pytest.mark.parametrize(
    ("text", "answer", "searches", "valid"),
    [
        (QUESTION, "Elbe", None, True),
        (f"{QUESTION} The Elbe", "Elbe", None, False),
        ("Which river?", "Elbe", None, False),
        ("a b c d e f g h i", "Elbe", None, False),
        ("w " * 600, "Elbe", None, False),
        (QUESTION, "Elbe", ["a"], False),
        (QUESTION, "Elbe", ["a", "a"], False),
        (QUESTION, "Elbe", ["a", "b"], True),
    ],
)
def test_what_is_a_question(text, answer, searches, valid):
    assert is_question(text, answer, searches=searches) == valid


def test_questions_are_stored_as_bytes():
    problems = [Prompt("Wo?", answer=[1, "é"], kind="k"), Prompt("x" * 5000, answer=1)]
    rows = stored(problems)
    assert read_stored(rows[:1]) == problems[:1] and not rows[1].any()


def test_what_is_no_question_pays_and_old_ones_take_its_place():
    given = {"least_characters": 8, "most_characters": 13, "least_words": 1, "reuse_below": 0.8}
    reused = paid = 0
    for collected, _, _ in walked("ssp", 8, max_turns=0, **given):
        batch, rollouts = collected.batch, collected.batch.rollouts
        write = of_cell(batch, WRITE)
        assert len(write) == 4 and [len(batch.groups[k]) for k in range(4)] == [1] * 4
        solve = rollouts.outcome[of_cell(batch, SOLVE)].reshape(-1, 4).mean(axis=1)
        valid = rollouts.reward[write] >= 0
        np.testing.assert_allclose(rollouts.reward[write][valid], 1 - solve[: valid.sum()])
        assert (rollouts.reward[write][~valid] == -1).all()
        assert (rollouts.outcome[write][~valid] == 0).all()
        assert {batch.grades[row].outcome for row in write[~valid]} <= {0.0}
        paid += int((~valid).sum())
        reused += collected.metrics["reused_questions"]
        assert len(solve) == valid.sum() + collected.metrics["reused_questions"] <= 4
    assert reused > 0 and paid > 0


ASKED = "<search>Bo born</search><found>(1) here</found><search>{}</search><found>(2) there</found>"


WRITTEN = [
    ASKED.format("Ur river") + f"\n```text\n{QUESTION}\n```",
    ASKED.format("Bo born") + f"\n```text\n{QUESTION}\n```",
    f"<search>once</search>\n```text\n{QUESTION}\n```",
    ASKED.format("Ur river") + "\n```text\ntoo short\n```",
    f"<search>once</search>\n```text\n{QUESTION}\n``` <search>without an end",
]


class Scripted(numpy_actor.Words):
    """Reads rows as what was written, by their first tokens."""

    def batch_decode(self, rows, **options):
        return [WRITTEN[row[0] % len(WRITTEN)] if row else "" for row in rows]


class Asking(numpy_actor.NumpyActor):
    """Its answers are read as what was written."""

    def draw(self, requests, key, sampling=None, constants=None):
        sampled = super().draw(requests, key, sampling, constants)
        return dataclasses.replace(sampled, tokenizer=Scripted())


def searching_task():
    return dataclasses.replace(
        numbered_task(),
        environment=load("lookup:people=40,size=32,test_size=8").environment,
        read_problem=lookup.read_problem,
    )


def test_questions_have_to_be_searched_for_where_there_are_tools():
    task = searching_task()
    stage = recipe("ssp", max_turns=4).experience.stages["pose_questions"]
    chain = experience(stages=[stage])
    own = numpy_actor.setting(chain, task=task, prompts=8)
    seen = set()
    for collected, _, _ in numpy_actor.walk(chain, Asking(), own=own):
        rollouts, write = collected.batch.rollouts, of_cell(collected.batch, WRITE)
        valid = rollouts.reward[write] >= 0
        first = rollouts.tokens[write, 0] % len(WRITTEN)
        cut = rollouts.truncated[write] | (rollouts.length[write] < 2)
        # One text is a question with two searches. Some are not answered from the passages.
        assert not valid[(first != 0) | cut].any()
        answered = collected.metrics.get("answered_from_passages", 0)
        assert valid.sum() == round(answered * ((first == 0) & ~cut).sum())
        assert collected.metrics["searches"] > 0
        seen |= {*first.tolist()}
    assert seen == {*range(len(WRITTEN))}


def test_passages_of_other_questions_are_mixed_with_those_of_a_question():
    task, actor = searching_task(), Reading()
    found = [task.train[0], None, task.train[1], task.train[2]]
    passages = [["own one", "own two"], ["other"], [], ["third", "other"]]
    own = dataclasses.replace(numpy_actor.setting(experience(), task=task), response_tokens=64)
    turn = StepContext(0, jax.random.key(0), own, lambda prompts: [])
    given = found, [True, False, True, True], passages
    answered = _answered(*given, 4, actor, turn)
    assert answered == [True, False, False, True]
    first, second = (request.view.show(request.prompt, task).text for request in actor.requests)
    assert all(text in first for text in ("own one", "own two", "other", "third"))
    assert "own one" in second and task.train[2].text in second
    assert _answered(*given, 0, actor, turn) == answered
    assert "third" not in actor.requests[0].view.show(found[0], task).text


def test_passages_are_the_numbered_lines_of_replies():
    task = load("searches:people=16,size=4,test_size=2")
    text = "<search>a</search>\n<found>(1) Ba born\n(2) Ko</found>\n<found>Error: (3)</found>(4) x"
    assert _passages(text, task) == ["Ba born", "Ko"]


class Reading:
    """An actor that stores requests, and whose responses are correct."""

    def encode(self, text):
        return text.split()

    def draw(self, requests, key):
        self.requests = requests
        return requests

    def grade(self, requests):
        return SimpleNamespace(outcomes=lambda: np.ones((len(requests), 1)))


def test_both_roles_search_in_turns():
    task = searching_task()
    chain = recipe("ssp", max_turns=1).experience
    own = numpy_actor.setting(chain, task=task, prompts=8)
    told, valid = dict.fromkeys((SOLVE, WRITE), 0), 0.0
    for collected, _, _ in numpy_actor.walk(chain, Asking(chance=0.9), 24, own=own):
        valid += collected.metrics["valid_questions"]
        for cell in told:
            rows = of_cell(collected.batch, cell)
            replies = collected.batch.rollouts.records["origin"][rows] == TOOL
            assert not (collected.batch.rollouts.mask[rows] & replies).any()
            told[cell] += int(replies.sum())
    assert min(told.values()) > 0 and valid > 0


@pytest.mark.parametrize(("answer", "valid"), [("castle", False), ("Elbe", True)])
def test_a_question_that_names_the_answer_is_none_whatever_the_gold_response_is(answer, valid):
    task = numbered_task()
    given = {"answer": answer, "gold": f"<answer>{answer}</answer>"}
    train = [dataclasses.replace(prompt, **given) for prompt in task.train]
    task = dataclasses.replace(task, train=train, read_problem=None)
    chain = recipe("ssp", max_turns=0).experience
    own = numpy_actor.setting(chain, task=task, prompts=8)
    found = numpy_actor.walk(chain, Asking(), own=own)
    assert any(collected.metrics["valid_questions"] for collected, _, _ in found) == valid


def test_who_asks_sees_the_answer_and_how_to_search_but_not_the_question():
    task = load("lookup:people=40,size=32,test_size=8")
    prompt = task.train[0]
    shown = question_to(True).show(prompt, task).text
    assert (
        prompt.answer in shown
        and "<answer>" not in shown
        and "<search>" in shown
        and prompt.text[:20] not in shown
    )
    plain = question_to(False).show(prompt, task).text
    assert shown.startswith(plain) and "<search>" not in plain


def test_a_task_without_tools_is_refused_where_questions_are_searched_for():
    chain = experience(stages=[recipe("ssp", max_turns=4).experience.stages["pose_questions"]])
    with pytest.raises(
        ValueError, match=r"must have an environment with a search.* got 'numbered'"
    ):
        chain.init(numpy_actor.setting(chain))


@pytest.mark.slow
def test_training_on_questions_to_given_answers(tmp_path):
    given = ("max_turns=0", "least_characters=4", "least_words=1")
    steps = training_runs.on_brackets("ssp", tmp_path, steps=3, hyperparameters=given)
    assert max(training_runs.values(steps, "experience/valid_questions")) > 0
    assert max(training_runs.values(steps, "experience/question_rate")) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0
