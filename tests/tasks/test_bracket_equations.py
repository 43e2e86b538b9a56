"""Each equation of a brackets trace is right or wrong by itself."""

import pytest

from rlvr_jax.tasks import load
from rlvr_jax.tasks.bracket_equations import equation_scores


def scores(text):
    return [score for _, score in equation_scores(None, text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("( 3 + 9 = 12 ) - 4 = 8", [1, 1]),
        ("3 * ( 9 - 4 = 5 ) = 15", [1, 1]),
        # The second goes on from the number that was said.
        ("( 3 + 9 = 11 ) - 4 = 7", [0, 1]),
        ("( 3 + 9 = 12 ) - 4 = 9 ; 3 * ( 9 - 4 = 5 ) = 15", [1, 0, 1, 1]),
        ("3 - 9 = 6", [0]),
        ("3 + 9", []),
        ("", []),
        ("=", [0]),
        ("3 + 9 =", [0]),
        ("3 + 9 = )", [0]),
        ("3 + 9 + 1 = 13", [0]),
        ("= 4 + 1 = 5", [0, 1]),
        ("( ) + 1 = 1", [0]),
        (") 3 + 1 = 4", [0]),
        ("( 3 + 1 = 4 ; 2 + 2 = 4", [1, 1]),
        ("3 + > = 4", [0]),
    ],
)
def test_scores(text, found):
    assert scores(text) == found


def test_a_step_ends_with_the_number_behind():
    text = "( 3 + 9 = 12 ) - 4 = 8 ; 1"
    ends = [text[:end] for end, _ in equation_scores(None, text)]
    assert ends == ["( 3 + 9 = 12", "( 3 + 9 = 12 ) - 4 = 8"]


def test_every_gold_is_two_right_equations():
    task = load("brackets", train=64)
    assert all(
        [score for _, score in task.score_steps(prompt, prompt.gold)] == [1, 1]
        for prompt in task.train
    )
