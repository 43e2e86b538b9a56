"""Critiques: what they conclude, and which are kept."""

import json

import pytest

from experiments import critiques as command
from rlvr_jax.tasks import Response, load
from rlvr_jax.tasks.brackets import BASE_MODEL
from rlvr_jax.tasks.derived.critiques import (
    conclusion,
    critique_prompts,
    grade_critiques,
    keep_critiques,
    request_of,
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ok. Conclusion: right [END]", True),
        ("no. Conclusion: wrong [END]", False),
        ("Conclusion: wrong [END] wait. Conclusion: right [END]\n", True),
        ("Conclusion: right or wrong", None),
        ("Conclusion: right [END] and more", None),
    ],
)
def test_a_critique_concludes_with_its_last_words(text, said):
    assert conclusion(text) is said


def test_critiques_that_agree_with_the_verifier_are_kept():
    texts = ["a Conclusion: right [END]", "b Conclusion: right [END]", "c Conclusion: wrong"]
    assert keep_critiques(texts, [1.0, 0.0, 0.0]) == [True, False, False]
    (prompt,) = critique_prompts("2+2?", ["4", "5", "6"], [1.0, 0.0, 0.0], texts)
    assert prompt.text.startswith("2+2?\n\nA solution:\n4") and prompt.solution == (texts[0],)
    told = [Response(texts[0]), Response(texts[0], truncated=True), Response("wrong")]
    assert [g.outcome for g in grade_critiques([prompt] * 3, told)] == [1.0, 0.0, 0.0]


NAME = "brackets:train=24"
JUDGE = "rlvr_jax.tasks.brackets_judge:critique"


def write(path, *critics):
    """The file of the command for two problems of brackets."""
    words = ["--model", BASE_MODEL, "--task", NAME, "--problems", "0", "20", "--candidates", "16"]
    command.main([*words, "--out", str(path), "--critics", *critics])
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("critiques") / "critiques.jsonl"
    write(path, JUDGE)
    return path


def test_the_command_stores_critiques_that_agree_with_the_verifier(file):
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    task, made = load(NAME), load(f"critiques:{file}")
    known = {prompt.text: prompt for prompt in task.train}
    prompts = [known[row["problem"]] for row in rows]
    grades = task.verify(prompts, [Response(row["candidate"]) for row in rows])
    assert {row["outcome"] for row in rows} == {0, 1}
    for row, grade, prompt in zip(rows, grades, made.train, strict=True):
        assert conclusion(row["critique"]) == (grade.outcome == 1) == (row["outcome"] == 1)
        assert prompt.text == request_of(row["problem"], row["candidate"])
        assert prompt.solution == (row["critique"],)
    assert made.test == task.test and made.base_model is None
    mixed = [made.train[0], task.test[0], made.train[0]]
    texts = [rows[0]["critique"], task.test[0].gold, "unreadable"]
    assert [one.outcome for one in made.verify(mixed, list(map(Response, texts)))] == [1, 1, 0]


def test_a_critic_that_is_wrong_or_unreadable_is_counted(tmp_path, capsys):
    rows = write(tmp_path / "all.jsonl", JUDGE, "own_judges:approving")
    correct = [row for row in rows if row["critic"] == JUDGE and row["outcome"] == 1]
    assert len([row for row in rows if row["critic"] != JUDGE]) == len(correct) > 0
    disagree = len([row for row in rows if row["critic"] == JUDGE]) - len(correct)
    assert f"left out: 0 unreadable, {disagree} disagree, 0 failed" in capsys.readouterr().out
    with pytest.raises(
        ValueError, match=r"no critique of \d+ candidates .* unreadable, 0 disagree"
    ):
        write(tmp_path / "none.jsonl", "own_judges:longer")
    with pytest.raises(
        ValueError, match=r"no critique of \d+ candidates .* \d+ failed\)\. Use other"
    ):
        write(tmp_path / "none.jsonl", "own_judges:broken")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"problem": "1 2 3 >"}, "problems of .* must be train prompts of 'brackets"),
        ({"outcome": 0.5}, "outcome of row 1 of .* must be 0 or 1, got 0.5"),
        ({"critique": "Conclusion: right"}, "the conclusion of row 1 of .* must agree"),
        ({"task": 3, "critique": 3}, "'critique' must be a text"),
    ],
)
def test_a_file_of_critiques_that_does_not_fit_is_refused(change, message, file, tmp_path):
    row = json.loads(file.read_text().splitlines()[0])
    path = tmp_path / "one.jsonl"
    path.write_text(json.dumps(row | change | {"task": NAME}))
    with pytest.raises(ValueError, match=message):
        load(f"critiques:{path}")


def test_problems_are_positions_among_the_train_prompts(tmp_path):
    with pytest.raises(ValueError, match=r"problems must be positions among the 24 .*, got \[24\]"):
        command.main(["--model", BASE_MODEL, "--task", NAME, "--problems", "24", "--out", "x"])
