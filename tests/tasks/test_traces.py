"""Traces: right answers of a policy as a file, and as the worked solutions of a task."""

import json

import pytest
import training_runs

from experiments import traces as command
from rlvr_jax.tasks import Response, load
from rlvr_jax.tasks.brackets import BASE_MODEL
from rlvr_jax.tasks.derived.traces import steps_of, trace_row
from rlvr_jax.tasks.synthesis.coverage import most_new_ngrams

NAME = "brackets:train=24"


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("traces") / "teacher.jsonl"
    command.main(["--model", BASE_MODEL, "--task", NAME, "--samples", "4", "--out", str(path)])
    return path


def test_what_is_written_is_right_and_read_as_solutions(file):
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    task, traced = load(NAME), load(f"traces:{file}")
    assert 0 < len(rows) < len(task.train)
    assert [p.text for p in traced.train] == [row["prompt"] for row in rows]
    assert traced.test == task.test and traced.fingerprint() != task.fingerprint()
    for prompt, row in zip(traced.train, rows, strict=True):
        texts = ["".join(steps) for steps in row["solutions"]]
        assert len(set(texts)) == len(texts) <= 4 and "".join(prompt.solution) == texts[0]
        grades = task.verify([prompt] * len(texts), [Response(text) for text in texts])
        assert all(grade.outcome == 1 for grade in grades)
        assert [len(text.split()) for text in texts] == sorted(len(t.split()) for t in texts)


def test_the_stored_responses_are_the_first_ones_or_those_of_the_most_new_ngrams(tmp_path):
    stored = {}
    given = ["--model", BASE_MODEL, "--task", NAME, "--samples", "16", "--shown", "first"]
    for name, number, selected in (
        ("all", "16", "first"),
        ("first", "2", "first"),
        ("new", "2", "new_ngrams"),
    ):
        path = tmp_path / f"{name}.jsonl"
        chosen = ["--per-prompt", number, "--selected", selected, "--out", str(path)]
        command.main([*given, *chosen])
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        stored[name] = [["".join(steps) for steps in row["solutions"]] for row in rows]
    assert stored["first"] == [texts[:2] for texts in stored["all"]]
    for texts, new in zip(stored["all"], stored["new"], strict=True):
        assert new == [texts[place] for place in most_new_ngrams(texts, 2)]
    assert stored["new"] != stored["first"]


@pytest.mark.thorough
def test_a_method_learns_from_the_traces_of_a_policy(file, tmp_path):
    steps = training_runs.on_brackets(
        "luffy_mixed", tmp_path, f"traces:{file}", prompts_per_step=4, samples_per_prompt=4
    )
    assert min(training_runs.values(steps, "experience/traces_right")) == 4
    assert max(training_runs.values(steps, "gradient_norm")) > 0


def test_steps_are_those_of_the_task_or_lines():
    task = load(NAME)
    lines = load("arithmetic")
    assert "".join(steps_of(task, task.train[0], task.train[0].gold)) == task.train[0].gold
    assert steps_of(lines, lines.train[0], "a\nb") == ["a\n", "b"]
    assert steps_of(lines, lines.train[0], "a\n") == ["a\n"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prompt": "1 2 3 >"}, "prompts of .* must be train prompts of 'brackets"),
        ({"solution": ["nonsense"]}, "the solutions of .* must be correct"),
        ({"solutions": [["nonsense"]]}, "the solutions of .* must be correct"),
        ({"task": "operators"}, "rows of .* must be of one task"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(change, message, tmp_path):
    task = load(NAME)
    rows = [trace_row(NAME, task, prompt, [prompt.gold]) for prompt in task.train[:2]]
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(map(json.dumps, [rows[0], rows[1] | change])))
    with pytest.raises(ValueError, match=f"traces: {message}"):
        load(f"traces:{path}")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prompt": ["1 2 3 >"]}, "'prompt' must be a text"),
        ({"solution": "one text"}, "'solution' must be a list"),
        ({"solutions": ["one text"]}, "'solutions' must be a list"),
    ],
)
def test_a_row_of_another_form_is_refused(change, message, tmp_path):
    task = load(NAME)
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps(trace_row(NAME, task, task.train[0], [task.train[0].gold]) | change))
    with pytest.raises(ValueError, match=f"row 1 of {path}.*{message}"):
        load(f"traces:{path}")


def test_a_file_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match=r"path must be a file of JSON lines, got nowhere\.jsonl"):
        load("traces:nowhere.jsonl")
