"""Where questions ask for their answer, and what a gold looks like then."""

import pytest

from rlvr_jax.tasks import Prompt
from rlvr_jax.tasks.answer_form import BOXED, asked_form, instructed, marked_line, written


@pytest.mark.parametrize(
    ("text", "form"),
    (
        ("What is 1 + 1?", ""),
        ("Put it in \\boxed{}.", "box"),
        ("Use \\fbox.", "box"),
        ("The last line should be of the form Answer: $Answer (without quotes).", "line"),
        ('put your answer on its own line after "Answer:".', "line"),
        ("End with 'The answer is: X'.", "line"),
        ("Write **Final Answer:** <number>", "line"),
        ("Finish with Answer: [your answer]", "line"),
        ('output the final answer after "####".', "mark"),
        ('Put it after "####" and in \\boxed{}.', "box"),
        ("Q: 1 + 1?\nAnswer:", ""),
        ("Q: 2 + 1?\nAnswer: 3\nQ: 1 + 1?\nAnswer:", ""),
        ("Is the answer: 3 or 4?", ""),
    ),
)
def test_questions_ask_for_a_form(text, form):
    assert asked_form(Prompt(text)) == form


def test_a_message_before_the_question_asks_as_well():
    prompt = Prompt("1 + 1?", messages=[{"role": "system", "content": "Use \\boxed{}."}])
    assert asked_form(prompt) == "box"
    assert instructed(prompt, BOXED) == prompt


@pytest.mark.parametrize(
    ("text", "instruction", "whole"),
    (
        ("1 + 1?", BOXED, "1 + 1?" + BOXED),
        ("1 + 1? Use \\boxed.", BOXED, "1 + 1? Use \\boxed."),
        ("1 + 1? Write 'Answer: X'.", BOXED, "1 + 1? Write 'Answer: X'."),
        ("1 + 1? Use \\boxed.", " Think.", "1 + 1? Use \\boxed. Think."),
    ),
)
def test_an_instruction_about_a_box_gives_way_to_another_form(text, instruction, whole):
    assert instructed(Prompt(text), instruction).text == whole


@pytest.mark.parametrize(
    ("form", "response"),
    (("", "\\boxed{5}"), ("box", "\\boxed{5}"), ("line", "Answer: 5"), ("mark", "#### 5")),
)
def test_golds_have_the_form_that_is_asked_for(form, response):
    assert written("5", form) == response
    assert written("5", form, behind_thinking=True) == f"<think>\n</think>\n\n{response}"


@pytest.mark.parametrize(
    ("response", "read"),
    (
        ("so\n#### 72", "so\n#### 72\nAnswer: 72"),
        ("#### 1\n#### 72 \nok", "#### 1\n#### 72 \nok\nAnswer: 72 "),
        ("####", "####"),
        ("#### \n72", "#### \n72"),
        ("72", "72"),
    ),
)
def test_what_stands_behind_the_last_mark_is_read_as_a_line(response, read):
    assert marked_line(response) == read
