"""Rows of Python as a task, graded by the mathematics verifier or by a custom one."""

import math

import numpy as np
import pytest
from question_files import every, sums, write

from rlvr_jax.tasks import Prompt, Response, from_rows, graded_one_by_one, load


@pytest.mark.parametrize("form", ["list", "generator", "numpy"])
def test_rows_of_python_are_a_task_like_those_of_a_file(tmp_path, form):
    arrays = [{"prompt": np.str_(r["prompt"]), "answer": np.int64(r["answer"])} for r in sums(20)]
    rows = {"list": sums(20), "generator": (row for row in sums(20)), "numpy": arrays}[form]
    task = from_rows(rows)
    filed = load(f"jsonl:{write(tmp_path / 'a.jsonl', sums(20))}")
    assert (task.train, task.test) == (filed.train, filed.test)
    assert task.name == "rows"


def test_rows_by_split_are_both_splits():
    task = from_rows({"train": sums(4), "test": sums(6)[4:]}, name="mine")
    assert (task.name, len(task.train), len(task.test)) == ("mine", 4, 2)
    task = from_rows({"train": sums(4), "validation": sums(7)[4:]})
    assert (len(task.train), len(task.test)) == (4, 3)
    assert len(from_rows(sums(4), sums(6)[4:]).test) == 2


def test_a_verifier_of_ones_own_gets_the_columns_of_the_rows():
    seen = []

    def reward(prompt, response):
        seen.append((prompt.answer, prompt.meta))
        return 1.0

    rows = [{"prompt": f"Q{i}", "tests": [i, math.pi], "answer": {"a": i}} for i in range(5)]
    task = from_rows(rows, verify=graded_one_by_one(reward))
    task.verify(task.train[:1], [Response("")])
    assert task.train[0] == Prompt("Q0", answer={"a": 0}, meta=seen[0][1])
    assert seen == [({"a": 0}, {"tests": [0, math.pi], "answer": {"a": 0}})]
    assert task.train[0].text == "Q0" and len(every(task)) == 5


def test_rows_need_no_answer_for_a_verifier_of_ones_own():
    verify = graded_one_by_one(lambda prompt, response: 0.0)
    rows = [{"prompt": f"Q{i % 3}", "tests": str(i % 3)} for i in range(6)]
    with pytest.warns(UserWarning, match="3 questions occur before"):
        assert len(every(from_rows(rows, verify=verify))) == 3
    rows = [{"prompt": f"Q{i % 3}", "tests": str(i)} for i in range(6)]
    with pytest.raises(ValueError, match="3 questions have two answers"):
        from_rows(rows, verify=verify)


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    (
        (["a"], {}, r"rows: row 1: rows must be dictionaries, got str. For a DataFrame use"),
        ([*sums(150), 3], {}, "rows: row 151: rows must be dictionaries, got int"),
        ([], {}, "rows must have at least one question"),
        ({"dev": []}, {}, r"rows by split must have 'train', got \['dev'\]"),
        (sums(3), {"chioce": True}, "options must be among .*, got chioce"),
        (sums(3), {"held_out": 0}, r"held_out must be in \(0, 1\), got 0"),
        (sums(3), {"held_out": 0, "verify": len}, r"held_out must be in \(0, 1\), got 0"),
        (sums(3), {"choice": True, "verify": len}, "choice must be left out with a custom verify"),
    ),
)
def test_what_is_wrong_with_rows_is_said(rows, options, message):
    with pytest.raises(ValueError, match=message):
        from_rows(rows, **options)
