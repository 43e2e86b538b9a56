import dataclasses
import functools

import pytest

from rlvr_jax.tasks import Response, load

reasoning_gym = pytest.importorskip("reasoning_gym", reason="pip install -e .[tasks]")

SEEDS = 200  # looked through for a question with this answer


def verdict(asked, gold):
    name, answer = asked["dataset"], asked["answer"]
    return {"ours": ours(name, answer, gold), "package": package(name, answer, gold)}


def ours(name, answer, gold):
    task = _task(name)
    (prompt, *_) = task.train
    if not isinstance(prompt.answer, str):
        gold = _entry(name, gold)
    prompt = dataclasses.replace(prompt, answer=gold)
    (grade,) = task.verify([prompt], [Response(f"<answer>{answer}</answer>")])
    return int(grade.outcome)


def package(name, answer, gold):
    try:
        return round(float(_items(name).score_answer(answer, _entry(name, gold))), 3)
    except Exception as error:
        return type(error).__name__


@functools.cache
def _task(name):
    return load(f"reasoning_gym:{name}", size=1, test_size=1)


@functools.cache
def _items(name):
    return reasoning_gym.create_dataset(name, seed=0, size=SEEDS)


@functools.cache
def _entry(name, gold):
    found = (item for item in _items(name) if item["answer"] == gold)
    return next(found, {"answer": gold, "metadata": {"number": int(gold) if gold.isdigit() else 0}})


def agree(got, wanted):
    same = (
        abs(got["package"] - wanted["package"]) < 1e-3
        if _are_numbers(got, wanted)
        else (got["package"] == wanted["package"])
    )
    return same and got["ours"] == wanted["ours"]


def _are_numbers(*verdicts):
    return all(not isinstance(verdict["package"], str) for verdict in verdicts)
