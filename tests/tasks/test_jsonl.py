"""Files of questions: splits, golds, and errors that name the line."""

import json

import pytest

from rlvr_jax.tasks import Response, load, self_check
from rlvr_jax.tasks.mathematics import BOXED


def write(path, rows):
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def sums(count):
    return [{"prompt": f"What is {i} + 1?", "answer": i + 1} for i in range(count)]


@pytest.fixture
def path(tmp_path):
    return write(tmp_path / "sums.jsonl", sums(60))


def test_answers_are_graded_by_the_mathematics_verifier(path):
    task = load(f"jsonl:{path}")
    prompt = task.train[0]
    texts = (f"so \\boxed{{{prompt.answer}}}", f"\\boxed{{{prompt.answer}.0}}", "\\boxed{-5}", "")
    grades = task.verify([prompt] * 4, [Response(text) for text in texts])
    assert [grade.outcome for grade in grades] == [1, 1, 0, 0]
    assert [grade.answer for grade in grades] == [prompt.answer, prompt.answer, "-5", None]


def test_the_boxed_answer_is_the_gold_and_the_self_check_is_content(path):
    task = load(f"jsonl:{path}")
    assert task.train[0].gold == f"\\boxed{{{task.train[0].answer}}}"
    assert self_check(task).problems == ()


def test_a_question_stays_in_its_split_when_lines_are_added_and_moved(tmp_path, path):
    more = write(tmp_path / "more.jsonl", reversed(sums(90)))
    small, large = load(f"jsonl:{path}"), load(f"jsonl:{more}")
    for split in ("train", "test"):
        texts = [{prompt.text for prompt in getattr(task, split)} for task in (small, large)]
        assert texts[0] <= texts[1]
    assert len(small.train) + len(small.test) == 60


def test_another_instruction_moves_no_question(path):
    plain, boxed = load(f"jsonl:{path}", instruction=""), load(f"jsonl:{path}")
    assert [p.text + BOXED for p in plain.test] == [prompt.text for prompt in boxed.test]
    assert len(plain.test) == len(boxed.test) > 0


def test_the_policy_is_told_to_box_unless_the_question_says_so(tmp_path):
    rows = [{"prompt": "1 + 1? Use \\boxed.", "answer": 2}, {"prompt": "1 + 2?", "answer": 3}]
    path = write(tmp_path / "train.jsonl", rows)
    test = write(tmp_path / "test.jsonl", sums(1))
    texts = [prompt.text for prompt in load(f"jsonl:{path}", test_path=test).train]
    assert texts == ["1 + 1? Use \\boxed.", "1 + 2?" + BOXED]
    options = {"test_path": test, "instruction": " Think."}
    assert load(f"jsonl:{path}", **options).train[0].text.endswith("boxed. Think.")


def test_a_question_that_stands_twice_is_kept_once(tmp_path):
    row = {"prompt": "Half?", "answer": "1/2"}
    again = {"prompt": "Half?", "answer": "\\frac12"}
    path = write(tmp_path / "twice.jsonl", [*sums(40), row, again])
    with pytest.warns(UserWarning, match=r"1 questions stand .* the first of .*, line 42"):
        task = load(f"jsonl:{path}")
    assert len(task.train) + len(task.test) == 41


def test_a_question_with_two_answers_is_refused(tmp_path):
    rows = [{"prompt": "Half?", "answer": "1/2"}, {"prompt": "Half?", "answer": "1/3"}]
    with pytest.raises(ValueError, match=r"line 2: .* before, '1/2' \(.*line 1\), got '1/3'"):
        load(f"jsonl:{write(tmp_path / 'two.jsonl', rows)}")


def test_half_held_out_is_about_half(tmp_path):
    task = load(f"jsonl:{write(tmp_path / 'many.jsonl', sums(1000))}", held_out=0.5)
    # Five standard deviations of a binomial count are 79.
    assert abs(len(task.test) - 500) < 80


def test_a_second_file_is_the_test_split_and_its_questions_leave_train(tmp_path, path):
    second = write(tmp_path / "test.jsonl", sums(4))
    with pytest.warns(UserWarning, match="4 questions of train are in test as well"):
        task = load(f"jsonl:{path}", test_path=second)
    assert (len(task.train), len(task.test)) == (56, 4)


def test_kinds_golds_and_the_instruction_are_kept(tmp_path):
    row = {"prompt": "A?", "answer": "{1, 2}", "kind": "sets", "gold": "is \\boxed{\\{2, 1\\}}"}
    second = write(tmp_path / "test.jsonl", [row])
    first = write(tmp_path / "train.jsonl", sums(1))
    prompt = load(f"jsonl:{first}", test_path=second, instruction=" Box it.").test[0]
    assert (prompt.text, prompt.kind, prompt.gold) == ("A? Box it.", "sets", row["gold"])


def test_questions_that_cannot_be_graded_are_dropped_with_a_count(tmp_path):
    rows = [*sums(40), {"prompt": "Impossible?", "answer": "x" * 600}]
    with pytest.warns(UserWarning, match=r"1 of \d+ questions were dropped.*line 41"):
        task = load(f"jsonl:{write(tmp_path / 'some.jsonl', rows)}")
    assert len(task.train) + len(task.test) == 40


def test_a_wrong_gold_is_an_error_of_its_line(tmp_path):
    rows = [*sums(1), {"prompt": "A?", "answer": "3", "gold": "\\boxed{4}"}]
    with pytest.raises(ValueError, match=r"line 2: 'gold' must be .* answer '3'.* reads '4'"):
        load(f"jsonl:{write(tmp_path / 'wrong.jsonl', rows)}")


@pytest.mark.parametrize(
    ("row", "message"),
    (
        ("{", "must be a JSON object, got Expecting"),
        ("[1]", "must be a JSON object, got list"),
        ({"answer": "1"}, "'prompt' must be text, got no such field"),
        ({"prompt": "A?"}, "'answer' must be text or a number, got no such field"),
        ({"prompt": " ", "answer": "1"}, "'prompt' must be text, got ' '"),
        ({"prompt": "A?", "answer": [1]}, r"'answer' must be text or a number, got \[1\]"),
        ({"prompt": "A?", "answer": True}, "'answer' must be text or a number, got True"),
        ('{"prompt": "A?", "answer": NaN}', "'answer' must be text or a number, got nan"),
        ('{"prompt": "A?", "answer": 1e400}', "'answer' must be text or a number, got inf"),
        ('{"prompt": "A\\ud800?", "answer": 1}', "'prompt' must be text, got half a character"),
        ('{"prompt": "A?", "answer": "\\ud800"}', "'answer' must be text, got half a character"),
        ("[" * 100_000, "must be a JSON object, got maximum recursion depth"),
        ({"prompt": "A?", "answer": "1", "kind": 3}, "'kind' must be text, got 3"),
        ({"prompt": "A?", "answer": "1", "anwser": 3}, r"got \['anwser'\]"),
    ),
)
def test_a_bad_line_is_named(tmp_path, row, message):
    path = write(tmp_path / "bad.jsonl", [*sums(2), "", row])
    with pytest.raises(ValueError, match=rf"bad.jsonl, line 4: .*{message}"):
        load(f"jsonl:{path}")


@pytest.mark.parametrize(
    ("text", "message"),
    ((None, "must be a readable UTF-8 file"), (b"\xff", "UTF-8"), (b"\n", "at least one question")),
)
def test_a_bad_file_is_named(tmp_path, text, message):
    path = tmp_path / "file.jsonl"
    if text is not None:
        path.write_bytes(text)
    with pytest.raises(ValueError, match=f"jsonl: path must .*{message}.*file.jsonl|{message}"):
        load(f"jsonl:{path}")


def test_a_split_without_questions_is_refused(tmp_path):
    path = write(tmp_path / "one.jsonl", sums(1))
    with pytest.raises(ValueError, match=r"split '(train|test)' must have gradable questions"):
        load(f"jsonl:{path}")


def test_a_share_outside_its_range_is_refused(path):
    with pytest.raises(ValueError, match=r"held_out must be in \(0, 1\), got 1.5"):
        load(f"jsonl:{path}", held_out=1.5)
