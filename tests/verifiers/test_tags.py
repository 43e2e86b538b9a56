"""Tags and their combiners, against results run with the published reward functions."""

import time

import pytest

from rlvr_jax.verifiers.tags import add, floor, gate, prefilled_tags, tags

GOOD = "<think>a</think><answer>b</answer>"
UNCLOSED = "<think>a</think><answer>b"
TWICE = "<think><think>a</think><answer>b</answer>"


@pytest.mark.parametrize(("text", "share"), [(GOOD, 1.0), (UNCLOSED, 0.75), (TWICE, 0.75)])
def test_share_counts_the_tags_that_occur_once(text, share):
    assert tags(text).share == share


@pytest.mark.parametrize(("text", "ok"), [(GOOD, True), (UNCLOSED, False), (TWICE, False)])
def test_ok_wants_every_tag_once(text, ok):
    assert tags(text).ok is ok
    assert gate(1.0, tags(text).ok) == float(ok)


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        ("<think>a</think>b", True),
        ("<think></think>z", True),
        ("<think>a</think>x</think>", True),
        ("x<think>a</think>", False),
        ("<think>a<think>b</think>", False),
        ("<think>a", False),
        ("\n<think>a</think>b", False),
    ],
)
def test_the_think_format_can_be_read_from_the_report(text, accepted):
    report = tags(text, ["think"])
    starts = report.think_span is not None and report.think_span[0] == len("<think>")
    assert (starts and report.counts["<think>"] == 1) is accepted


def test_wrong_order_is_not_ok():
    report = tags("<answer>b</answer><think>a</think>")
    assert not report.order and not report.ok and report.share == 1
    assert not tags("<think>a</think></answer>b<answer>").ok


def test_spans_are_the_text_of_the_blocks():
    report = tags(GOOD)
    assert GOOD[slice(*report.think_span)] == "a"
    assert GOOD[slice(*report.answer_span)] == "b"


def test_without_an_answer_block_the_answer_is_what_follows():
    text = "<think>a</think> the rest"
    assert text[slice(*tags(text, ["think"]).answer_span)] == " the rest"
    assert tags("no tags", ["think"]).answer_span is None


def test_tags_quoted_in_the_thinking_are_free():
    text = "<think>I should write <answer> now</think><answer>b</answer>"
    report = tags(text)
    assert report.ok and text[slice(*report.answer_span)] == "b"
    assert report.counts["<answer>"] == 2


def test_two_answers_are_none():
    report = tags(GOOD + "<answer>c</answer>")
    assert report.answer_span is None and not report.ok


def test_an_unfinished_answer_is_none():
    assert tags(UNCLOSED).answer_span is None


def test_a_prefilled_tag_is_not_counted_and_must_not_come_again():
    report = tags("a</think><answer>b</answer>", prefilled=["<think>"])
    assert report.ok and report.share == 1 and len(report.counts) == 3
    assert report.think_span == (0, 1)
    assert not tags(GOOD, prefilled=["<think>"]).ok


@pytest.mark.parametrize("text", ["", "<", "</think>", "<think>", "</answer><answer>", "\ud800"])
def test_no_text_is_ok_or_raises_by_accident(text):
    report = tags(text)
    assert not report.ok and report.answer_span is None


def test_long_hostile_text_takes_no_time():
    start = time.monotonic()
    tags("<think>" * 10**5 + "<answer>" * 10**5)
    assert time.monotonic() - start < 10  # and not by the square of its length


def test_add_adds():
    assert add(0.5)(1.0, True) == 1.5
    assert add(0.5)(0.0, 0.75) == 0.375
    assert add(0)(1.0, 0.0) == 1.0


def test_gate_gives_nothing_for_half_a_form():
    assert [gate(1.0, form) for form in (True, 1.0, 0.75, False)] == [1, 1, 0, 0]


def test_floor_has_three_values():
    combine = floor()
    assert [combine(1, True), combine(0, True), combine(1, False)] == [1.0, -0.5, -1.0]
    assert combine(0.5, True) == 0.25


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tags("", []), "spec must have names"),
        (lambda: tags("", ["a", "a"]), "spec must have names, each once"),
        (lambda: tags("", prefilled=["<answer>"]), "prefilled must be the first"),
        (lambda: add(-1), "weight must be at least 0, got -1"),
        (lambda: floor((1, 0, 2)), "values must be three in rising order"),
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
