"""Where the reference answer is read behind a response, and answers that cannot be read."""

import dataclasses

import numpy as np
import pytest
from paper_part_cases import answer_alone

from rlvr_jax.experience import experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.laws.numbered_task import numbered_task
from rlvr_jax.experience.task_fit import check_prompts_suffice
from rlvr_jax.methods.rewards.rlpr import (
    NO_SPREAD,
    at_last_word,
    behind_tags,
    likelihoods,
    likely_answers,
)
from rlvr_jax.tasks import Grade, Prompt, Response

BRACKETS = Prompt("3 9 4 15 >", answer=[3, 9, 4, 15], gold="3 * ( 9 - 4 = 5 ) = 15")


@pytest.mark.parametrize(
    ("prompt", "response", "found"),
    [
        (BRACKETS, Response("( 3 + 9 = 12 ) - 4 = 8"), ("( 3 + 9 = 12 ) - 4 =", " 15", True)),
        (BRACKETS, Response("3 * 9 = 27", True), ("3 * 9 =", " 15", False)),
        (BRACKETS, Response("15"), ("", "15", False)),
        (BRACKETS, Response(""), ("", "15", False)),
        (Prompt("1 + 1 =", answer=2), Response("I say 3 "), ("I say", " 2", True)),
    ],
)
def test_the_last_word_gives_way_to_that_of_the_reference(prompt, response, found):
    assert at_last_word(prompt, response) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("so</think> <answer>7</answer>", ("so</think> <answer> ", "2", True)),
        ("so</think> <answer>\n 7 </answer>", ("so</think> <answer>\n ", "2", True)),
        ("so</think> <answer> </answer>", ("so</think> <answer> ", "2", False)),
        ("<answer>7</answer></think>", ("<answer>7</answer></think> <answer> ", "2", False)),
        ("no tags", ("no tags</think> <answer> ", "2", False)),
    ],
)
def test_the_block_of_tags_gives_way_to_the_reference(text, found):
    assert behind_tags(Prompt("1 + 1 =", answer=2), Response(text)) == found


@pytest.mark.parametrize("splice", [at_last_word, behind_tags])
@pytest.mark.parametrize("answer", ["", "  ", None])
def test_a_reference_without_tokens_is_refused_before_anything_is_drawn(splice, answer):
    task = numbered_task()
    last = dataclasses.replace(task.train[-1], answer=answer)
    task = dataclasses.replace(task, train=[*task.train[:-1], last])
    chain = experience(stages=[likely_answers(splice)])
    with pytest.raises(ValueError, match="prompts must have an answer of one token or more"):
        chain.init(numpy_actor.setting(chain, task=task))


def test_the_number_0_is_an_answer_and_none_is_not():
    task = numbered_task()
    chain = experience(stages=[likely_answers(answer_alone)])
    assert task.train[0].answer == 0
    check_prompts_suffice(task, chain)
    for nothing in (None, ""):
        train = [dataclasses.replace(task.train[0], answer=nothing), *task.train[1:]]
        with pytest.raises(ValueError, match=r"Prompt\.answer, which must be in every prompt"):
            check_prompts_suffice(dataclasses.replace(task, train=train), chain)


def test_a_step_without_deviations_does_not_move_the_running_mean():
    state, means = NO_SPREAD, []
    for deviations in ([np.nan], [0.2, 0.4], [], [0.5], [np.nan], [0.6]):
        state = state.after(np.array(deviations), keep=0.5, start=2)
        means.append(float(state.mean))
    np.testing.assert_allclose(means, [0, 0, 0, 0.4, 0.4, 0.5])


class Letters(numpy_actor.NumpyActor):
    """Reads letter by letter, and is sure of all but blanks."""

    def encode(self, text):
        return [1 + ord(letter) % (numpy_actor.WORDS - 1) for letter in text]

    def score(self, batch, needs, of="current"):
        blank = batch.rollouts.tokens == self.encode(" ")[0]
        return {"logp": np.where(blank, -9.0, 0.0)}


def test_only_tokens_of_the_answer_are_its_probability():
    (first, *_) = numpy_actor.walk(experience(), steps=1)
    batch, actor = first[0].batch, Letters()
    spliced = [behind_tags(*pair) for pair in zip(batch.prompts, batch.responses, strict=True)]
    np.testing.assert_array_equal(likelihoods(batch, actor, spliced, "current"), 1)
    # Asked for the blank before it, too, it is half as sure, or two thirds of an answer of two.
    asked = [one._replace(before=one.before[:-1], answer=f" {one.answer}") for one in spliced]
    assert (likelihoods(batch, actor, asked, "current") < 0.7).all()


class Unknowing(numpy_actor.NumpyActor):
    """Has no verdict on the first row of each group."""

    def grade(self, batch):
        graded = super().grade(batch)
        grades = [g if row % 4 else Grade(None) for row, g in enumerate(graded.grades)]
        return graded.graded(grades)


def test_rows_without_a_verdict_are_in_no_mean_and_no_spread():
    chain = experience(stages=[likely_answers(answer_alone)])
    ((collected, _, state),) = numpy_actor.walk(chain, Unknowing(), steps=1)
    batch, told = collected.batch, collected.metrics
    # The first row of each group is none of those that are compared.
    assert batch.decided.reshape(4, 4).tolist() == 4 * [[False, True, True, True]]
    known = batch.rollouts.reward.reshape(4, 4)[:, 1:].astype(float)
    spread = known.std(axis=1, ddof=1).mean()
    assert spread > 0 and told["group_spread"] == pytest.approx(spread, rel=1e-5)
    assert float(state["likely_answers"].spread.total) == pytest.approx(spread, rel=1e-5)
    assert 0.9 * told["reward/gain"] == pytest.approx(
        np.mean(known) - 0.1 * told["reward/format"], rel=1e-5
    )


class Counting(numpy_actor.NumpyActor):
    """Keeps how many rows were scored, and by whom."""

    def score(self, batch, needs, of="current"):
        scored.append((of, len(batch)))
        return super().score(batch, needs, of)


scored = []


def test_the_first_policy_reads_each_prompt_once():
    scored.clear()
    chain = experience(stages=[likely_answers(answer_alone)])
    numpy_actor.walk(chain, Counting(), steps=4)
    by_start = [rows for of, rows in scored if of == "start"]
    # Twelve prompts, four a step, four responses to each: in the fourth step all are known.
    assert by_start == [4, 4, 4]
