"""Tags, against results run with the published reward functions."""

import pytest
from own_cpu import own_cpu

from rlvr_jax.verifiers.tags import prefilled_tags, tags

GOOD = "<think>a</think><answer>b</answer>"
UNCLOSED = "<think>a</think><answer>b"
TWICE = "<think><think>a</think><answer>b</answer>"


@pytest.mark.parametrize(("text", "fraction"), [(GOOD, 1.0), (UNCLOSED, 0.75), (TWICE, 0.75)])
def test_share_counts_the_tags_that_occur_once(text, fraction):
    assert tags(text).fraction == fraction


@pytest.mark.parametrize(("text", "ok"), [(GOOD, True), (UNCLOSED, False), (TWICE, False)])
def test_ok_wants_every_tag_once(text, ok):
    assert tags(text).ok is ok


def test_wrong_order_is_not_ok():
    report = tags("<answer>b</answer><think>a</think>")
    assert not report.order and not report.ok and report.fraction == 1
    assert not tags("<think>a</think></answer>b<answer>").ok


def test_two_answers_are_not_ok():
    assert not tags(GOOD + "<answer>c</answer>").ok


def test_tags_quoted_in_the_thinking_are_free():
    text = "<think>I should write <answer> now</think><answer>b</answer>"
    report = tags(text)
    assert report.ok and report.counts["<answer>"] == 2


def test_a_prefilled_tag_is_not_counted_and_must_not_come_again():
    report = tags("a</think><answer>b</answer>", prefilled=["<think>"])
    assert report.ok and report.fraction == 1 and len(report.counts) == 3
    assert not tags(GOOD, prefilled=["<think>"]).ok


@pytest.mark.parametrize("text", ["", "<", "</think>", "<think>", "</answer><answer>", "\ud800"])
def test_no_text_is_ok_or_raises_by_accident(text):
    assert not tags(text).ok


def test_long_hostile_text_takes_no_time():
    with own_cpu() as spent:
        tags("<think>" * 10**5 + "<answer>" * 10**5)
    assert spent[0] < 10  # and not by the square of its length


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tags("", []), "spec must have names"),
        (lambda: tags("", ["a", "a"]), "spec must have names, each once"),
        (lambda: tags("", prefilled=["<answer>"]), "prefilled must be the first"),
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("tail", "wanted"),
    [
        ("<|im_start|>assistant\n<think>\n", ("<think>",)),
        ("assistant\n<think>\n\n</think>\n\n", ("<think>", "</think>")),
        ("Write <think> and </think>.\nassistant\n", ()),
        ("", ()),
    ],
)
def test_what_a_template_has_opened_is_found_at_the_end_of_the_prompt(tail, wanted):
    assert prefilled_tags(tail) == wanted
