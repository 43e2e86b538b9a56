"""The task of operators, against a brute force that evaluates left to right."""

import itertools

import pytest

from rlvr_jax.tasks import Response, load
from rlvr_jax.tasks.brackets import VOCABULARY
from rlvr_jax.tasks.sums.operators import MAX_TOKENS, legal_attempts

FUNCTIONS = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__}
PROMPT = next(p for p in load("operators").train if p.text == "3 9 4 8 >")


def outcome(text, prompt=PROMPT, truncated=False):
    return load("operators").verify([prompt], [Response(text, truncated)])[0].outcome


def reachable(a, b, c):
    values = set()
    for first, second in itertools.product(FUNCTIONS, repeat=2):
        inner = FUNCTIONS[first](a, b)
        value = FUNCTIONS[second](inner, c)
        if inner in range(100) and value in range(100):
            values.add(value)
    return values


def test_prompts_are_all_reachable_targets_of_all_triples():
    task = load("operators")
    wanted = {
        f"{a} {b} {c} {target} >"
        for a, b, c in itertools.product(range(1, 10), repeat=3)
        for target in reachable(a, b, c)
    }
    assert sorted(p.text for p in (*task.train, *task.test)) == sorted(wanted)


def test_no_set_of_numbers_is_in_both_splits():
    task = load("operators")
    train, test = ({tuple(sorted(p.answer[:3])) for p in s} for s in (task.train, task.test))
    assert not train & test
    assert len(test) == round((len(train) + len(test)) / 8)


def test_every_gold_is_right_in_words_of_the_vocabulary():
    task = load("operators")
    prompts = [*task.train, *task.test]
    grades = task.verify(prompts, [Response(prompt.gold) for prompt in prompts])
    assert all(grade.outcome == 1 for grade in grades)
    words = {word for p in prompts for word in f"{p.text} {p.gold}".split(" ")}
    assert words <= set(VOCABULARY)


def test_two_longest_attempts_fit_the_budget():
    longest = max(len(text.split()) for text in legal_attempts(9, 9, 9))
    assert longest + 1 + longest + 1 == MAX_TOKENS


@pytest.mark.parametrize(
    ("text", "wanted"),
    (
        ("3 + 9 = 12 - 4 = 8", 1),
        ("3 * 9 = 27 - 4 = 23 ; 3 + 9 = 12 - 4 = 8", 1),
        ("anything ; 3 + 9 = 12 - 4 = 8", 1),
        ("3 + 9 = 12 - 4 = 8 ; 3 * 9 = 27 - 4 = 23", 0),  # the last attempt counts
        ("3 ; 3 ; 3 + 9 = 12 - 4 = 8", 0),  # three attempts
        ("9 + 3 = 12 - 4 = 8", 0),  # another order
        ("3 + 9 = 13 - 4 = 8", 0),  # a wrong inner value
        ("3 + 9 = 12 - 4 = 9", 0),  # a wrong value
        ("3 * 9 = 27 - 4 = 23", 0),  # another target
        ("3 + 9 = 12 - 4 = 8 .", 0),  # the stop token is not part of the text
        ("3 + 9 - 4 = 8", 0),
        ("8", 0),
        ("", 0),
    ),
)
def test_outcomes(text, wanted):
    assert outcome(text) == wanted


@pytest.mark.parametrize("name", ["brackets", "operators"])
def test_the_last_attempt_is_the_answer(name):
    task = load(name)
    prompt = task.train[0]
    texts = [f"anything ; {prompt.gold}", prompt.gold, "8 ", ""]
    grades = task.verify([prompt] * 4, [Response(text) for text in texts])
    assert [grade.answer for grade in grades] == [prompt.gold, prompt.gold, "8", None]
    assert task.verify([prompt], [Response(prompt.gold, truncated=True)])[0].answer is None
    assert {*task.rewards} <= {"outcome", *grades[0].info}


def test_an_answer_that_did_not_end_is_wrong():
    assert outcome("3 + 9 = 12 - 4 = 8", truncated=True) == 0


def test_seeds_split_differently_and_the_same_seed_alike():
    assert load("operators", seed=1).fingerprint() != load("operators").fingerprint()
    assert load("operators", seed=0).fingerprint() == load("operators").fingerprint()


def test_a_negative_seed_is_refused():
    with pytest.raises(ValueError, match="operators: seed must be at least 0, got -1"):
        load("operators", seed=-1)
