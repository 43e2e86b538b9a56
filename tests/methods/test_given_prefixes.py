"""Responses that begin with part of a solution: the view, and numbers of rows."""

import pytest

from rlvr_jax.experience import experience
from rlvr_jax.experience.views import begin_with
from rlvr_jax.methods.guidance.g2rpo_a import guide_first_rows
from rlvr_jax.methods.guidance.seele import search_hint
from rlvr_jax.tasks import Prompt

LETTERS = Prompt("p", solution=("a", "b", "c", "d"))


@pytest.mark.parametrize(
    ("view", "tokens", "trained"),
    [
        (begin_with(0.5), "ab", False),
        (begin_with(0.6, trained=True), "ab", True),
        (begin_with(0.75, whole_steps=True), "abc", False),
        (begin_with(0.0), "", False),
    ],
)
def test_a_view_opens_a_response_with_part_of_the_solution(view, tokens, trained):
    shown = view.show(LETTERS, None)
    assert shown.text == "p" and shown.prefill(list) == list(tokens) and shown.trained == trained


def test_rows_must_be_a_multiple_of_the_rounds():
    with pytest.raises(ValueError, match="search_hint: rows of a group must be a multiple of"):
        experience(stages=[search_hint(4, 0.5)]).initial_samples(6)
    with pytest.raises(ValueError, match="guide_first_rows: rows must be below the 2 rollouts"):
        experience(stages=[guide_first_rows(2, 8)]).initial_samples(2)
