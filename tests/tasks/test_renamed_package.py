"""Renamed package: names, documentation, values."""

import re

import numpy as np
import pytest

from rlvr_jax import tasks
from rlvr_jax.tasks import Response
from rlvr_jax.tasks.code.renamed_package import rename, renamed_module, renamed_text

WORDS = {
    "a + b": lambda a, b: a + b,
    "a - b": lambda a, b: a - b,
    "the larger number of a and b": max,
    "the smaller number of a and b": min,
    "the larger number minus the smaller number of a and b": lambda a, b: abs(a - b),
    "2 * a + b": lambda a, b: 2 * a + b,
}


def test_the_documentation_is_enough_to_answer_and_the_question_shows_none_of_it():
    task = tasks.load("renamed_package", size=40, test_size=40, max_calls=3)
    used = {"train": set(), "test": set()}
    for split in used:
        for prompt in getattr(task, split):
            (documentation,) = prompt.hints
            known = {
                name: WORDS[words]
                for name, words in re.findall(
                    r"(\w+\.\w+)\(a, b\) returns (.*?)\. For", documentation
                )
            }
            expression = re.search(r"What does (.*) return", prompt.text)[1]
            assert set(re.findall(r"\w+\.\w+", expression)) == set(known)
            used[split] |= set(known)
            plain = expression
            for place, name in enumerate(known):
                plain = plain.replace(name, f"f{place}")
            functions = {f"f{place}": known[name] for place, name in enumerate(known)}
            assert eval(plain, functions) == prompt.answer
            for name, a, b, value in re.findall(
                r"example, (\w+\.\w+)\((\d+), (\d+)\) returns (-?\d+)", documentation
            ):
                assert known[name](int(a), int(b)) == int(value)
            assert documentation not in prompt.text
            assert task.show_hint(prompt, documentation) == f"{documentation}\n\n{prompt.text}"
    assert used["train"] == used["test"] and len(used["test"]) == 6


@pytest.mark.parametrize(
    ("text", "truncated", "outcome"),
    [
        ("{}", False, 1),
        ("It is {}.", False, 1),
        ("{}", True, 0),
        ("{} or 999", False, 0),
        ("", False, 0),
    ],
)
def test_the_last_number_of_a_complete_response_counts(text, truncated, outcome):
    task = tasks.load("renamed_package")
    prompt = next(prompt for prompt in task.test if prompt.answer < 0)
    response = Response(text.format(prompt.answer), truncated)
    (grade,) = task.verify([prompt], [response])
    assert grade.outcome == outcome


def test_another_seed_has_other_names():
    first, other = (tasks.load("renamed_package", seed=seed).test[0].text for seed in (0, 1))
    names = [
        set(re.findall(r"\b[a-z]{6}\b", text)) - {"return", "Answer", "number"}
        for text in (first, other)
    ]
    assert names[0] and not names[0] & names[1]


def test_names_are_replaced_one_to_one_by_names_that_nobody_had():
    names = rename(["mean", "std", "arange", "mean"], seed=3)
    assert names == rename(["arange", "std", "mean"], seed=3) != rename(names, seed=4)
    assert len(set(names.values())) == 3 and all(len(new) == 6 for new in names.values())
    text = renamed_text("np.mean(x) is the mean; meaningful", names)
    assert text == f"np.{names['mean']}(x) is the {names['mean']}; meaningful"
    module = renamed_module(np, names, "zwc")
    assert getattr(module, names["mean"])([1, 3]) == 2 and not hasattr(module, "mean")
    with pytest.raises(ValueError, match=r"must be of .*, got absent"):
        renamed_module(np, {"absent": "x"}, "zwc")
