"""Where a response says its answer."""

import pytest

from rlvr_jax.verifiers.answers import after_thinking, in_fence, in_tag


@pytest.mark.parametrize(
    ("response", "wanted"),
    [
        ("a", "a"),
        ("<think>a</think>b", "b"),
        ("a</think>b</think>c", "c"),
        ("<think>a", "<think>a"),
        ("", ""),
    ],
)
def test_what_follows_the_thinking(response, wanted):
    assert after_thinking(response) == wanted


@pytest.mark.parametrize(
    ("response", "wanted"),
    [
        ("<answer> 4 </answer>", "4"),
        ("<answer>4</answer> or <answer>5</answer>.", "5"),
        ("<answer>4</answer> or <answer>5", "4"),
        ("<answer><answer>4</answer>", "4"),
        ("<answer></answer>", ""),
        ("<answer>4", None),
        ("4</answer>", None),
        ("</answer>4<answer>", None),
        ("<ANSWER>4</ANSWER>", None),
        ("<think><answer>4</answer></think>4", None),
        ("<think>t<answer>4</answer>", "4"),
    ],
)
def test_the_last_closed_tag_counts(response, wanted):
    assert in_tag(response) == wanted


@pytest.mark.parametrize(
    ("response", "wanted"),
    [
        ("```\n1 2\n```", "1 2"),
        ("```text\n1 2\n```", "1 2"),
        ("so ```\r\n1 2\r\n``` is it", "1 2"),
        ("```\n1\n``` no: ```\n2\n```", "2"),
        ("```\n1\n``` and ```\n2", "1"),
        ("````\n1\n````", "1"),
        ("`1` and ```1``` and ```\n2\n```", "2"),
        ("```\n```", ""),
        ("~~~\n1 2\n~~~", "1 2"),
        ("~~~\n1 ```\n~~~", "1 ```"),
        ("~~~\n1\n```", None),
        ("```1```", None),
        ("```\n1", None),
        ("1", None),
        ("<think>```\n1\n```</think>1", None),
    ],
)
def test_the_last_closed_block_counts(response, wanted):
    assert in_fence(response) == wanted
