"""Brackets with something shown: texts, their tokens, and that the shipped policy heeds them."""

import dataclasses
import re
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

from rlvr_jax import policy
from rlvr_jax.rollout import Prompts, Sampling, sample
from rlvr_jax.tasks import Prompt, Response, load
from rlvr_jax.tasks.brackets import LARGEST_OPERAND, MAX_TOKENS, VOCABULARY, legal_attempts
from rlvr_jax.tasks.hinted_brackets import BASE_MODEL, HINTED_VOCABULARY, with_answer, with_hint

PROMPT = Prompt("3 9 4 15 >", answer=[3, 9, 4, 15], kind="hard")
WRONG = "( 3 + 9 = 12 ) - 4 = 8"


def without_hints(prompts):
    return [replace(prompt, hints=()) for prompt in prompts]


def test_prompts_and_grades_are_those_of_brackets():
    task, plain = load("hinted_brackets"), load("brackets")
    for own, other in ((task.train, plain.train), (task.test, plain.test)):
        assert without_hints(own) == without_hints(other)
    assert task.mixture == plain.mixture and task.verify is plain.verify
    assert task.fingerprint() != plain.fingerprint()
    few = load("hinted_brackets:train=9").train, load("brackets:train=9").train
    assert without_hints(few[0]) == without_hints(few[1])


def test_the_task_shows_hints_and_answers_as_the_functions_do():
    task = load("hinted_brackets")
    assert task.show_hint(PROMPT, "3 * (") == with_hint(PROMPT, "3 * (") == "3 9 4 15 ? 3 * ( >"
    assert task.show_answer(PROMPT, WRONG) == with_answer(PROMPT, WRONG)
    assert with_answer(PROMPT, WRONG) == f"3 9 4 15 @ {WRONG} >"
    assert (load("brackets").show_hint, load("brackets").show_answer) == (None, None)


def test_a_hint_stands_before_an_answer_whichever_comes_first():
    hinted = dataclasses.replace(PROMPT, text=with_hint(PROMPT, "3 *"))
    answered = dataclasses.replace(PROMPT, text=with_answer(PROMPT, WRONG))
    assert with_answer(hinted, WRONG) == with_hint(answered, "3 *")
    assert with_hint(answered, "3 *") == f"3 9 4 15 ? 3 * @ {WRONG} >"


@pytest.mark.parametrize("show", [with_hint, with_answer])
def test_marks_that_a_policy_may_write_are_left_out(show):
    assert show(PROMPT, "? 3 > @ * . <pad>") == show(PROMPT, "3 *")


@pytest.mark.parametrize("show", [with_hint, with_answer])
@pytest.mark.parametrize("text", ["", " ", "> ."])
def test_nothing_shown_is_the_plain_prompt(show, text):
    assert show(PROMPT, text) == PROMPT.text


@pytest.mark.parametrize(
    ("show", "prompt", "text", "message"),
    (
        (with_hint, PROMPT, "3 x", "with_hint: hint must be of the words of brackets, got 'x'"),
        (with_answer, PROMPT, "100", "with_answer: answer must be of the words of brackets"),
        (with_hint, Prompt("1 2 3 6 ? 1 >"), "1", r"without '\?', got '1 2 3 6 \? 1 >'"),
        (with_answer, Prompt("1 2 3 6 @ 1 >"), "1", "without '@', got '1 2 3 6 @ 1 >'"),
        (with_hint, Prompt("What is 1 + 2?"), "1", r"with_hint: prompt must be one of brackets"),
    ),
)
def test_what_cannot_be_shown_is_named(show, prompt, text, message):
    with pytest.raises(ValueError, match=message):
        show(prompt, text)


@pytest.fixture(scope="module")
def tokenizer():
    return policy.tokenizer(BASE_MODEL)


def test_words_keep_the_ids_of_brackets(tokenizer):
    plain = policy.tokenizer(load("brackets").base_model)
    assert HINTED_VOCABULARY[: len(VOCABULARY)] == VOCABULARY
    assert tokenizer.get_vocab() == {word: id for id, word in enumerate(HINTED_VOCABULARY)}
    assert plain.get_vocab() == {word: id for id, word in enumerate(VOCABULARY)}
    assert tokenizer.eos_token == plain.eos_token == "."


@pytest.mark.parametrize("text", [PROMPT.text, f"3 9 4 15 ? 3 * ( @ {WRONG} ; 3 * 9 = 27 >"])
def test_texts_come_back_from_their_tokens(tokenizer, text):
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text


def test_the_policy_has_room_for_the_longest_prompt_and_its_response():
    numbers = [LARGEST_OPERAND] * 3
    attempt = legal_attempts(*numbers)[0].text
    prompt = Prompt("12 12 12 24 >", answer=[*numbers, 24])
    hinted = Prompt(with_hint(prompt, attempt))
    longest = len(with_answer(hinted, f"{attempt} ; {attempt}").split()) + MAX_TOKENS
    assert longest <= policy.load(BASE_MODEL)[0].config.max_positions


def test_the_policy_is_small():
    assert sum(file.stat().st_size for file in Path(BASE_MODEL).iterdir()) < 3e6


NUM_PROMPTS, SAMPLES = 48, 4


def answered(tokenizer, prompts, texts):
    """Responses [len(prompts), SAMPLES] of the shipped policy to the texts."""
    model, params = policy.load(BASE_MODEL)
    rows = [tokenizer(text)["input_ids"] for text in texts]
    # One width, so that all calls share a program.
    tokens = np.zeros((len(rows), 32), np.int32)
    for index, row in enumerate(rows):
        tokens[index, : len(row)] = row
    rollouts = sample(
        model,
        params,
        Prompts(
            tokens,
            np.array([len(row) for row in rows]),
            np.arange(len(rows)),
            np.zeros(len(rows), int),
        ),
        jax.random.key(0),
        samples=SAMPLES,
        response_tokens=MAX_TOKENS,
        sampling=Sampling(),
        stop_tokens=(tokenizer.eos_token_id,),
    )
    rollouts = jax.device_get(rollouts)
    ends = rollouts.length - ~rollouts.truncated
    decoded = [tokenizer.decode(row[:end]) for row, end in zip(rollouts.tokens, ends, strict=True)]
    return np.array(decoded, object).reshape(len(prompts), SAMPLES)


def share_right(prompts, texts):
    asked = [prompt for prompt in prompts for _ in range(SAMPLES)]
    grades = load("brackets").verify(asked, [Response(text) for text in texts.ravel()])
    return np.mean([grade.outcome for grade in grades])


@pytest.fixture(scope="module")
def hard():
    prompts = [prompt for prompt in load("brackets").test if prompt.kind == "hard"]
    return prompts[:: len(prompts) // NUM_PROMPTS][:NUM_PROMPTS]


# Bounds lie far from what was measured on all held-out prompts (DEVLOG, "Base models of brackets").
@pytest.mark.thorough
def test_the_policy_follows_a_hint(tokenizer, hard):
    rates = []
    for words in (0, 3, 8):
        texts = [with_hint(prompt, "".join(prompt.solution[:words])) for prompt in hard]
        rates.append(share_right(hard, answered(tokenizer, hard, texts)))
    plain, begun, nearly_told = rates
    assert plain < 0.1
    assert begun > plain + 0.15
    assert nearly_told > 0.6


def test_the_policy_repeats_a_right_answer_and_turns_from_a_wrong_one(tokenizer, hard):
    told = answered(tokenizer, hard, [with_answer(prompt, prompt.gold) for prompt in hard])
    golds = np.array([prompt.gold for prompt in hard], object)[:, None]
    assert np.mean(told == golds) > 0.5
    wrong = [
        next(a.text for a in legal_attempts(*prompt.answer[:3]) if a.form == "left")
        for prompt in hard
    ]
    texts = [with_answer(prompt, answer) for prompt, answer in zip(hard, wrong, strict=True)]
    turned = answered(tokenizer, hard, texts)
    right_form = [bool(re.match(r"\d+ . \(", text)) for text in turned.ravel()]
    assert np.mean(right_form) > 0.5
    assert share_right(hard, turned) > 0.1
