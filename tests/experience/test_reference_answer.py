"""Where the reference answer is read behind a response, and answers that cannot be read."""

import dataclasses

import numpy_actor
import pytest

from rlvr_jax.experience import experience, likely_answers
from rlvr_jax.experience.stages.rewards.reference_answer import at_last_word, behind_tags
from rlvr_jax.tasks import Prompt, Response

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
        ("so</think> <answer>7</answer>", ("so</think> <answer>", " 2 ", True)),
        ("so</think> <answer></answer>", ("so</think> <answer>", " 2 ", False)),
        ("no tags", ("no tags</think> <answer>", " 2 ", False)),
    ],
)
def test_the_block_of_tags_gives_way_to_the_reference(text, found):
    assert behind_tags(Prompt("1 + 1 =", answer=2), Response(text)) == found


def test_a_reference_without_tokens_is_refused_in_a_sentence():
    task = numpy_actor.numbered_task()
    empty = [dataclasses.replace(prompt, answer="") for prompt in task.train]
    task = dataclasses.replace(task, train=empty)
    chain = experience(stages=[likely_answers(at_last_word)])
    own = numpy_actor.setting(chain, task=task)
    with pytest.raises(ValueError, match="the answer must have 1 to 8 tokens, got 0 for prompt"):
        numpy_actor.walk(chain, steps=1, own=own)
