"""Verdicts of critiques: neighbours of the cases."""

import pytest

from rlvr_jax.verifiers.texts.critique_rl import check, extract


@pytest.mark.parametrize(
    ("response", "verdict"),
    [
        (r"\conclusion{ True }", "true"),
        ("\\conclusion{\nTRUE\n}", "true"),
        (r"\conclusion{\textbf{True}}", "true"),
        (r"\conclusion{\mathrm{False}.}", "false"),
        (r"\conclusion{**\mathbf{ **False** }**}", "false"),
        (r"\conclusion{\text{\text{True}}}", None),
        (r"\conclusion{\text{Tr}ue}", None),
        (r"\conclusion{\text{True} \text{True}}", None),
        (r"\conclusion{\emph{True}}", None),
        (r"\conclusion{{True}}", None),
        (r"\conclusion{True!}", None),
        (r"\conclusion{not True}", None),
        (r"\conclusion{yes}", None),
        (r"\conclusion{True} \conclusion{False", None),
        (r"\conclusion {True}", None),
        (r"\Conclusion{True}", None),
        (r"\conclusion{True}</think>", None),
        (r"</think>\conclusion{True}", "true"),
        (r"\conclusion{\conclusion{False}}", "false"),
    ],
)
def test_a_verdict_is_one_word_in_the_last_conclusion(response, verdict):
    assert extract(response) == verdict


def test_a_verdict_is_right_if_it_is_the_label():
    assert [check(a, b) for a in ("true", "false") for b in (True, False)] == [1, 0, 0, 1]
