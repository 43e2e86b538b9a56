"""Verdicts on the stored responses of a run."""

import json

import pytest

from rlvr_jax.tasks import load
from rlvr_jax.tasks.derived.verdicts import stored_solutions


def write_run(folder, rows):
    settings = {"task": "operators", "task_options": [], "columns": []}
    (folder / "samples").mkdir()
    (folder / "config.json").write_text(json.dumps({"settings": settings}))
    for step, row in enumerate(rows):
        path = folder / "samples" / f"step_{step:06d}.jsonl"
        path.write_text(json.dumps({"prompt": "3 9 4 15 >", **row}) + "\n")
    return str(folder)


RIGHT = {"response": "3 * 9 = 27 - 4 = 23", "outcome": 1.0}
WRONG = {"response": "3 + 9 = 12 - 4 = 8", "outcome": 0.0}


def test_a_task_has_verdicts_on_as_many_correct_as_incorrect_responses(tmp_path):
    other = {"response": "3 + 9 = 12 + 4 = 16", "outcome": 0.5}
    path = write_run(tmp_path, [WRONG, WRONG, other, RIGHT])
    found = stored_solutions(tmp_path)
    assert [(one.solution, one.right) for one in found] == [
        (RIGHT["response"], True),
        (WRONG["response"], False),
    ]
    task, plain = load(f"verdicts:{path}"), load("operators")
    assert task.train[: len(plain.train)] == list(plain.train) and task.test == plain.test
    asked = task.train[len(plain.train) :]
    assert [prompt.answer for prompt in asked] == [True, False]
    assert all("3 9 4 15 >" in prompt.text for prompt in asked)
    assert task.mixture["verdict"] == pytest.approx(0.2)
    short = load(f"verdicts:{path}", request="{problem} @ {solution} >", fraction=0.5)
    assert short.train[-1].text == f"3 9 4 15 > @ {WRONG['response']} >"


@pytest.mark.parametrize(
    "change", [{"truncated": True}, {"verdict": False}, {"kind": "verdict"}, {"outcome": 1.0}]
)
def test_what_is_no_solution_has_no_verdict(tmp_path, change):
    path = write_run(tmp_path, [RIGHT, {**WRONG, **change}])
    assert stored_solutions(tmp_path) == []
    with pytest.raises(ValueError, match="got none of one label; store more of them"):
        load(f"verdicts:{path}")


def test_another_folder_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"must be a run directory with a config.json"):
        load(f"verdicts:{tmp_path}")
