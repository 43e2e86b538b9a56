"""Generators of reasoning-gym: splits, worked solutions, and data sets that are refused."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest
from question_files import outcomes

from rlvr_jax.tasks import Response, load, self_check
from rlvr_jax.tasks.gym.reasoning_gym import REFUSED
from rlvr_jax.tasks.synthesis.worked import WORKED, worked

pytest.importorskip("reasoning_gym")


# Graded by exact match: no worker starts.
EXACT = {"name": "reasoning_gym:gcd", "size": 20, "test_size": 5}
GSM = {"name": "reasoning_gym:gsm_symbolic", "size": 4, "test_size": 2}


@pytest.fixture(scope="module")
def chain_sum():
    return load("reasoning_gym:chain_sum", size=8, test_size=4)


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


def test_padding_an_exact_answer_earns_nothing():
    task = load(**EXACT)
    gold = task.train[0].answer
    assert outcomes(task, task.train[0], f" {gold} ", f"{gold} {gold}", "", "x") == [1, 0, 0, 0]
    cut = Response("x", truncated=True)
    grades = task.verify([task.train[0]] * 2, [Response(f" {gold} "), cut])
    assert [grade.answer for grade in grades] == [gold, None]


@pytest.mark.slow
def test_equal_numbers_in_other_spellings_are_right_and_half_right_ones_wrong(chain_sum):
    prompt = chain_sum.train[0]
    gold = prompt.answer["answer"]
    assert outcomes(chain_sum, prompt, f"{gold}.0", f"{gold} or 7", f"{gold}7") == [1, 0, 0]


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
