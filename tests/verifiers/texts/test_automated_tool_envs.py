"""FTRL: calls that solve an open question, and turns without calls; the sheet's examples."""

import pytest

from rlvr_jax.verifiers.texts.automated_tool_envs import counted_calls, without_calls


def test_calls_solve_each_answer_once_and_for_their_own_tool():
    open_ = {"add": ["5", "7"]}
    assert counted_calls(["add"] * 3, ["5", "5", "7"], open_) == (3, 2)
    assert counted_calls(["sub"], ["7"], open_) == (1, 0)


@pytest.mark.parametrize(
    ("text", "num_open", "reward"),
    (
        ("", 0, -0.5),
        (" \n", 2, -0.5),
        ("<tool_call> 1005", 2, -0.3),
        ("It is 1,005.", 2, 1 / 3),
        ("It is 1,005.", 0, 1),
        ("It is 15.", 0, 0.5),
        ("It is 15.", 1, 0),
    ),
)
def test_a_turn_without_calls_has_the_reward_of_the_first_case(text, num_open, reward):
    assert without_calls(text, "1005", num_open) == reward


def test_the_answer_may_be_part_of_a_number_and_of_any_case():
    assert without_calls("15", "5", 0) == without_calls("PARIS", "Paris", 0) == 1
