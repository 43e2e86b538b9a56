"""Answers made to break the verifier: each is a grade, or a time-out, after a moment's work."""

import pytest
from own_cpu import own_cpu

from rlvr_jax.verifiers import MathVerifier

GOLDS = ["3", r"\sqrt{2}+1", "x^2+1", "(1,2)", "1,2", "x<2", "y=2x+1", r"\{1,2\}", "apples"]
SECONDS = 2.0  # of this process's own time for all golds; far more than it takes

LONG = {
    "a megabyte of letters": "a" * 10**6,
    "a megabyte in a box": r"\boxed{" + "9" * 10**6 + "}",
    "a megabyte of brackets": r"\boxed{" + "(" * 10**6 + "}",
    "a thousand boxes": " ".join(rf"\boxed{{{i}}}" for i in range(1000, 2000)),
    "boxes in boxes": r"\boxed{" * 1000 + "7" + "}" * 1000,
    "boxes that stay open": r"\boxed{" * 10**5,
}
REPEATED = {
    250: ["+-", "x=", "1=", "1:", "1,", "(", "{", "1 ", "x^", "a_", "x/", "$"],
    100: ["x<", "1'", "²", "½", "5%", "5!", "|x|", "f(", "\\$", "sin ", "\ud800"],
    60: ["\\cup", "x \\in", "(0,1)\\cup", "\\{x|", "12:00:", "\\mod{5}", "1 or "],
    40: ["\\pm1", "\\setminus", "\\approx", "five ", "1 million ", "\\frac{1}"],
    25: ["\\begin{pmatrix}", "\\overline{3}", "base 5", "\\frac{x}{", "\\text{"],
}
SHORT = [
    *(text * times for times, texts in REPEATED.items() for text in texts),
    *(r"\sqrt{" * n + "2" + "}" * n for n in (20, 40, 80)),
    *("(" * n + "x+1" + ")^2" * n for n in (10, 20, 80)),
    "9^9^9^9",
    "(9999!)!",
    "9999!^{9999}",
    "((x+1)^{9999})^{9999}",
    "(((2^{9999})^{9999})^{9999})^{9999}",
    "2^{9999}" * 50,
    r"e^{e^{e^{e^{9}}}}",
    r"\exp(\exp(\exp(10)))",
    r"\sin(10^{9999})",
    r"\binom{10000000}{5000000}",
    r"\sum_{k=1}^{10000000} k",
    r"\frac{d^4}{dx^4}" * 30 + "x",
    "1e99999",
    "0." + "3" * 500 + "...",
    "1" + ",111" * 120,
    r"\begin{vmatrix}" + r"\\".join(["1&2&3&4&5&6"] * 6) + r"\end{vmatrix}",
    "a" * 512,
    "\x00" * 100,
    "\u0301" * 500,
    "__import__('os').system('true')",
]
LATE = [
    r"\int_0^1\sin(x^7)\ln(1+x^3)dx",
    r"\prod_{k=1}^{5000}k!",
]


@pytest.mark.thorough
@pytest.mark.parametrize("text", [*LONG.values(), *SHORT], ids=lambda text: ascii(text[:20]))
def test_a_hostile_answer_is_wrong_at_once(verifier, text):
    response = text if text in LONG.values() else rf"\boxed{{{text}}}"
    with own_cpu() as spent:
        verdicts = verifier.grade(GOLDS, [response] * len(GOLDS))
    assert spent[0] < SECONDS
    assert {verdict.outcome for verdict in verdicts} == {False}


@pytest.mark.parametrize("text", SHORT, ids=lambda text: ascii(text[:20]))
def test_a_hostile_gold_is_a_verdict_or_none(verifier, text):
    assert verifier.grade([text], [r"\boxed{7}"])[0].outcome in (False, None)


@pytest.mark.thorough
def test_what_takes_a_worker_too_long_is_late_and_wrong():
    with MathVerifier(workers=1, wall_seconds=0.3) as hasty:
        hasty.grade([r"\int_0^1 x dx"], [r"\boxed{1/2}"])
        verdicts = hasty.grade(["3"] * 2 + ["0.5"], [rf"\boxed{{{t}}}" for t in [*LATE, "1/2"]])
    assert [verdict.outcome for verdict in verdicts] == [False, False, True]
    assert all(verdict.timed_out for verdict in verdicts[:2])


def test_the_same_box_a_thousand_times_is_one_answer(verifier):
    assert verifier.grade(["3"], [r"\boxed{3} " * 1000])[0].outcome == 1
