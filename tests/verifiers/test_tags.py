"""Tags, against results run with the published reward functions."""

import pytest
from own_cpu import own_cpu

from rlvr_jax.verifiers.tags import prefilled_tags, tags

GOOD = "<think>a</think><answer>b</answer>"


@pytest.mark.parametrize(
    ("text", "fraction", "ok"),
    [
        (GOOD, 1.0, True),
        ("<think>a</think><answer>b", 0.75, False),
        ("<think><think>a</think><answer>b</answer>", 0.75, False),
        ("<think>a</think></answer>b<answer>", 1.0, False),
        (GOOD + "<answer>c</answer>", 0.5, False),
        # Tags quoted in the thinking are free.
        ("<think>I should write <answer> now</think><answer>b</answer>", 0.75, True),
    ],
)
def test_every_tag_is_wanted_once_and_in_order(text, fraction, ok):
    report = tags(text)
    assert (report.fraction, report.ok) == (fraction, ok)


def test_wrong_order_is_not_ok():
    report = tags("<answer>b</answer><think>a</think>")
    assert not report.order and not report.ok and report.fraction == 1


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
