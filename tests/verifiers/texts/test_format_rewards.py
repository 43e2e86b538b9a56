"""Readings of a format beside each other; the rows of their cases are walked elsewhere."""

import pytest

from rlvr_jax.verifiers.texts.format_rewards import (
    check,
    exact_tags,
    tag_fraction,
    think_format,
    well_formed,
)

GOOD = "<think>a</think><answer>b</answer>"


@pytest.mark.parametrize(
    ("response", "opened", "readings"),
    [
        (GOOD, "", (1, 1, 1, 1)),
        ("</think><answer></answer>", "<think>", (1, 1, 1, 1)),
        (GOOD, "<think>\n", (0, 1, 0, 0)),
        ("<answer>b</answer>", "<think>\n\n</think>\n\n", (1, 1, 1, 1)),
        ("<think>a</think><answer>b</answer></think>", "", (0, 0.75, 1, 0)),
        ("<think>no </answer> here</think><answer>b</answer>", "", (0, 0.75, 1, 1)),
        ("<think>a</think><think>b</think><answer>c</answer>", "", (0, 0.5, 0, 0)),
        ("<think>a</think><answer>b</answer><think>", "", (0, 0.75, 0, 0)),
        ("<think >a</think><answer>b</answer>", "", (0, 0.75, 0, 0)),
    ],
)
def test_the_readings_differ_in_what_they_look_at(response, opened, readings):
    found = (
        exact_tags(response, opened),
        tag_fraction(response, opened),
        think_format(response, opened),
        well_formed(response, opened),
    )
    assert found == readings


def test_a_quoted_tag_is_free_in_ours_alone():
    quoted = "<think>I write <answer> soon</think><answer>b</answer>"
    found = check(quoted, "")
    assert found.outcome == 1
    assert found.info == {"exact_tags": 0, "tag_fraction": 0.75, "think_format": 1}


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
def test_the_think_format_is_one_opening_at_the_start_and_a_closing(text, accepted):
    assert think_format(text) is accepted
