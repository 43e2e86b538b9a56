"""Critiques: what they conclude, and which are kept."""

import pytest

from rlvr_jax.tasks import Response
from rlvr_jax.tasks.derived.critiques import (
    conclusion,
    critique_prompts,
    grade_critiques,
    keep_critiques,
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ok. Conclusion: right [END]", True),
        ("no. Conclusion: wrong [END]", False),
        ("Conclusion: wrong [END] wait. Conclusion: right [END]\n", True),
        ("Conclusion: right or wrong", None),
        ("Conclusion: right [END] and more", None),
    ],
)
def test_a_critique_concludes_with_its_last_words(text, said):
    assert conclusion(text) is said


def test_critiques_that_agree_with_the_verifier_are_kept():
    texts = ["a Conclusion: right [END]", "b Conclusion: right [END]", "c Conclusion: wrong"]
    assert keep_critiques(texts, [1.0, 0.0, 0.0]) == [True, False, False]
    (prompt,) = critique_prompts("2+2?", ["4", "5", "6"], [1.0, 0.0, 0.0], texts)
    assert prompt.text.startswith("2+2?\n\nA solution:\n4") and prompt.solution == (texts[0],)
    told = [Response(texts[0]), Response(texts[0], truncated=True), Response("wrong")]
    assert [g.outcome for g in grade_critiques([prompt] * 3, told)] == [1.0, 0.0, 0.0]
