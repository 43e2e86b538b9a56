"""Answer equivalence, against a table of cases of which published verifiers get a third wrong."""

import functools
import os
import random

import pytest

from rlvr_jax.verifiers.grade import Grade
from rlvr_jax.verifiers.maths import MathVerifier, parsing, verifier as maths, verify_math

RIGHT = [
    ("1/3", r"\boxed{12/36}"),
    ("1/3", r"\boxed{\dfrac13}"),
    ("0.5", r"\boxed{50\%}"),
    ("10", r"\boxed{10 cm}"),
    ("3", r"\boxed{x=3}"),
    ("1234", r"\boxed{1,234}"),
    ("2√2", r"\boxed{\sqrt8}"),
    ("7", r"\boxed{7.0}"),
    ("0.1", r"\boxed{10^{-1}}"),
    ("{1,2}", r"\boxed{\{2,1\}}"),
    (r"\{1,2\}", r"\boxed{\{2,1\}}"),
    ("[0,1)", r"\boxed{0 \le x < 1}"),
    ("(−∞,1)∪(2,∞)", r"\boxed{x<1 or x>2}"),
    ("−1", r"\boxed{e^{iπ}}"),
    ("5", r"\boxed{101_2}"),
    ("π/2", r"\boxed{90°}"),
    ("∅", r"\boxed{\varnothing}"),
    ("(1,2)ᵀ", r"\boxed{(1,2)}"),
    ("1/2", r"<think>\boxed{1/3}</think> \boxed{1/2}"),
    ("x²+2x+1", r"\boxed{(x+1)^2}"),
    ("y=2x+1", r"\boxed{2x−y+1=0}"),
    # further ones
    ("10", r"so \boxed{10 \text{ cm}^2}."),
    (r"\frac{3}{2}", r"\boxed{1\frac12}"),
    ("1.5", r"\boxed{1\tfrac{1}{2}}"),
    ("1200", r"\boxed{1.2\times10^3}"),
    ("(1,2)", r"\boxed{\begin{pmatrix}1\\2\end{pmatrix}}"),
    (r"(\frac{\sqrt{3}}{2}, 1)", r"\boxed{\left(\frac{3}{2\sqrt3},\, 1\right)}"),
    (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", r"\boxed{\begin{bmatrix}1&2\\ 3&4.0\end{bmatrix}}"),
    ("2, -2", r"\boxed{x = \pm 2}"),
    ("-2, 2", r"\boxed{x=2, x=-2}"),
    (r"1 \pm \sqrt{8}", r"\boxed{1+2\sqrt{2}, 1-2\sqrt{2}}"),
    ("x>2", r"\boxed{(2,\infty)}"),
    ("3+4i", r"\boxed{4i+3}"),
    (r"\frac{1+\sqrt5}{2}", r"\boxed{\frac{\sqrt{5}}{2}+0.5}"),
    ("90°", r"\boxed{90}"),
    (r"\frac{\sqrt{3}}{2}", r"\boxed{\sin 60^\circ}"),
    ("1234567", r"\boxed{1 234 567}"),
    ("2/3", r"\boxed{0.\overline{6}}"),
    ("37/300", r"\boxed{0.12\overline{3}}"),
    ("Tuesday", r"\boxed{\text{tuesday}}"),
    ("1/2", r"\boxed{\frac12} that is \boxed{\frac{1}{2}}"),
    (r"\ln 2", r"\boxed{\frac{\ln 4}{2}}"),
    ("1/2004!", r"\boxed{\frac{1}{2004!}}"),
    ("5", r"\boxed{a+b=5}"),
    ("5", r"\boxed{f(3) = 5}"),
    ("5", r"\boxed{x=2+3=5}"),
    ("{5}", r"\boxed{x \in \{5\}}"),
    (r"\{\sqrt{8}\}", r"\boxed{\{2\sqrt2\}}"),
]  # fmt: skip
WRONG = [
    ("1/3", r"\boxed{0.3333}"),
    ("1/3", r"\boxed{0.333333}"),
    ("50", r"\boxed{50\%}"),
    ("(1,4)", r"\boxed{1 \text{ and } 4}"),
    ("(0,1)", r"\boxed{x=0,y=1}"),
    ("3", r"\boxed{3 (unclosed"),
    ("3", r"The answer is not 3"),
    ("2", r"\boxed{1} or \boxed{2}"),
    ("1/2004!", r"\boxed{1/2006!}"),
    ("0.0001", r"\boxed{0.00010001}"),
    # further ones
    ("3", ""),
    ("3", r"\boxed{}"),
    ("3", r"\boxed{3, 4}"),
    ("1", r"\boxed{1/1/2}"),
    ("[0,1]", r"\boxed{(0,1)}"),
    ("2^{-99}", r"\boxed{2^{-98}}"),
    (r"\sqrt2", r"\boxed{1.414214}"),
    (r"\frac{x}{3}", r"\boxed{0.333333x}"),
    ("10 m", r"\boxed{10 cm}"),
    ("12", r"\boxed{1 2}"),
    ("3.5", r"\boxed{" + "9" * 400 + r"\pi}"),
    (r"\sqrt2", r"\boxed{\sqrt{2}+10^{-30}}"),
    ("5", r"\boxed{5 million}"),
    ("5", r"\boxed{x=5, y=6}"),
    ("(1,2)", r"\boxed{(2,1)}"),
    ("{1,2}", r"\boxed{\{1,2,3\}}"),
    ("3", r"<think>\boxed{3}</think> I do not know."),
    ("3", r"\boxed{3} \boxed{4"),
    ("A", r"\boxed{A or B}"),
    ("5", r"\boxed{\{5\}}"),
    ("{5}", r"\boxed{5}"),
    ("5", r"\boxed{[5,5]}"),
    ("5", r"\boxed{(5,5)}"),
    ("5", r"\boxed{5, 5}"),
    (r"\sqrt{8}", r"\boxed{\{2\sqrt2\}}"),
    (r"\{\sqrt{8}\}", r"\boxed{2\sqrt2}"),
    (r"\sqrt{8}", r"\boxed{[\sqrt8,\sqrt8]}"),
    ("5", r"\boxed{6=5}"),
    ("5", r"\boxed{6=5=5}"),
]
BOMBS = [
    "9^9^9^9",
    "9^{9^{9^9}}",
    "9^{9^9}",
    "(10^9)!",
    "1000000000!",
    "10000!!!!",
    "2^{1000000000}",
    "(2^{9999})^{9999!}",
    "(" * 200 + "1" + ")" * 200,
    r"\frac{1}" * 100,
    r"\{" + ",".join(map(str, range(2000))) + r"\}",
    "1" * 5000,
    r"\sqrt" * 100,
    "\ud800",
    "\\",
    "{",
    "}",
    "^",
    "1/0",
    r"\frac{1}{0}",
    "0^{-1}",
    "_",
    "=",
    "==",
    "x=",
    ",",
    "()",
    "[]",
    r"\{\}",
    r"\pm",
    r"\cup",
    "<",
    "a<b<c<d",
    "1_{99}",
    "\x00",
    "%",
    "°",
    "__import__('os').system('true')",
    r"\begin{pmatrix}\end{pmatrix}",
    "999999^{999}",
]


@pytest.fixture(scope="module")
def hasty():
    with MathVerifier(workers=1, wall_seconds=0.3) as shared:
        shared.grade([r"\sqrt{3}"], [r"\boxed{3^{1/2}}"])
        yield shared


@pytest.mark.parametrize(("gold", "response"), RIGHT)
def test_right_answers_are_right(verifier, gold, response):
    assert verifier.grade([gold], [response])[0].outcome == 1


@pytest.mark.parametrize(("gold", "response"), WRONG)
def test_wrong_answers_are_wrong(verifier, gold, response):
    assert verifier.grade([gold], [response])[0].outcome == 0


@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: ascii(bomb[:20]))
def test_hostile_answers_are_wrong_without_a_timeout(verifier, bomb):
    for gold in ("3", r"\sqrt{2}+1"):
        verdict = verifier.grade([gold], [rf"\boxed{{{bomb}}}"])[0]
        assert verdict.outcome == 0
        assert not verdict.timed_out


TOKENS = [
    *r"12xyie,;=()[]{}^_/+-.%°!|:&<>½²√π0 ",
    *("\\{", "\\}", "\\\\", "\\frac", "\\sqrt", "\\pi", "\\pm", "\\cup", "\\le", "\\in", "\\infty"),
    *("\\text{", "\\begin{pmatrix}", "\\end{pmatrix}", "\\overline{", "and", "or", "cm", "^T"),
]


@pytest.mark.thorough
def test_nothing_that_can_be_written_raises():
    seeds = random.Random(0)
    texts = ["".join(seeds.choices(TOKENS, k=seeds.randint(1, 12))) for _ in range(3000)]
    known: dict = {}
    for text in texts:
        query = functools.partial(maths._look_up, known, {}, set())
        for gold in (text, "1", "x^2", "(1,2)", "{1,2}"):
            assert maths._right([gold], [text], maths.Rules(), query) in (True, False, None)


@pytest.mark.parametrize("gold", ["", "foo(", r"\frac{", "9^{9^{9^9}}", "x∈" * 200 + "1"])
def test_a_gold_that_cannot_be_read_is_none_whatever_the_response(verifier, gold):
    for response in (r"\boxed{3}", rf"\boxed{{{gold}}}", ""):
        assert verifier.grade([gold], [response])[0].outcome is None


def test_fifty_percent_is_fifty_if_asked():
    with MathVerifier(percent_is_number=True) as verifier:
        verdicts = verifier.grade(["50", "0.5", "5"], [r"\boxed{50\%}"] * 3)
    assert [verdict.outcome for verdict in verdicts] == [True, True, False]


@pytest.mark.parametrize(
    ("response", "correct"),
    [
        ("The answer is (A)", True),
        ("Answer: **A**", True),
        (r"\boxed{A}", True),
        (r"\boxed{\text{(A)}}", True),
        ("The answer is (B), no, the answer is A.", True),
        ("The answer is a mess", False),
        ("The answer is (B)", False),
        ("A", False),
    ],
)
def test_option_letters(response, correct):
    with MathVerifier(choice=True) as verifier:
        assert verifier.grade(["A"], [response])[0].outcome == correct


def test_an_option_letter_without_a_box_needs_the_choice_type(verifier):
    assert verifier.grade(["A"], ["The answer is (A)"])[0].outcome == 0


def test_any_of_several_golds_will_do(verifier):
    golds = [["1/2", "2"], ["foo(", "2"], ["foo(", "bar("]]
    verdicts = verifier.grade(golds, [r"\boxed{2}"] * 3)
    assert [verdict.outcome for verdict in verdicts] == [True, True, None]


def test_the_extracted_answer_is_reported():
    assert verify_math("3", r"\boxed{ 4 }") == Grade(0.0, answer="4", stage="exact")
    assert verify_math("3", "four") == Grade(0.0, stage="no answer")


@pytest.mark.thorough
def test_a_comparison_that_takes_too_long_is_counted(hasty):
    hard = r"\int_0^1 \frac{\sin(x^7)\ln(1+x^3)}{\sqrt{1+x^5}} dx"
    responses = [rf"\boxed{{{hard}}}", r"\boxed{2\sqrt{2}}"]
    late, right = hasty.grade([r"\sqrt{2}", r"\sqrt{8}"], responses)
    assert (late.outcome, late.timed_out, right.outcome) == (False, True, True)
    # On a busy machine more than this one may be late.
    assert hasty.pool.counters["timed_out"] >= 1


def test_simple_answers_need_no_worker():
    with MathVerifier() as verifier:
        golds = ["1/3", "0.5", "{1,2}", "[0,1)", "1234", "π/2", "(1,2)"]
        verifier.grade(golds, [rf"\boxed{{{i}}}" for i in golds])
        assert verifier.pool.counters["jobs"] == 0


@pytest.mark.thorough
def test_simple_answers_are_compared_here(monkeypatch):
    with MathVerifier() as verifier:
        monkeypatch.setattr(verifier.pool, "map", lambda jobs: pytest.fail(f"asked {jobs}"))
        golds = [str(i) for i in range(2000)]
        verdicts = verifier.grade(golds, [rf"so \boxed{{{i}}}" for i in golds])
        assert all(verdict.outcome for verdict in verdicts)
        assert not verifier.grade(["2"], [r"\boxed{3}"])[0].outcome


@pytest.mark.thorough
def test_a_long_response_meets_no_timeout(verifier):
    for text in (r"\boxed{" * 10**5, r"\boxed{1}" * 10**4, "1 " * 10**5, "{" * 10**5):
        assert not verifier.grade(["2"], [text])[0].timed_out


@pytest.mark.parametrize(
    ("nested", "innermost"),
    [("({}) or 1", "1"), (r"({}) \cup 1, 2", "3"), (r"x<({}) \cup 1", "1")],
)
def test_each_part_of_a_nested_answer_is_read_once(monkeypatch, nested, innermost):
    read = []

    def counted(text, number=parsing.read_number):
        read.append(text)
        assert len(read) < 500
        return number(text)

    monkeypatch.setattr(parsing, "read_number", counted)
    parsing._parse.cache_clear()
    for _ in range(24):
        innermost = nested.format(innermost)
    assert parsing.parse_answer.__wrapped__(innermost, False) is not None
    assert read


def test_uneven_lists_are_refused(verifier):
    with pytest.raises(ValueError, match="equal lengths, got 2 and 1"):
        verifier.grade(["1", "2"], ["1"])


def test_half_of_the_cores_compare_by_default():
    with MathVerifier() as verifier:
        assert verifier.pool._size == max(1, min(8, (os.cpu_count() or 1) // 2))


def test_a_negative_tolerance_is_refused():
    with pytest.raises(ValueError, match="relative_tolerance must be at least 0, got -1"):
        MathVerifier(relative_tolerance=-1)
