"""Questions that occur twice: loaded once, or refused with two answers."""

import pytest
from question_files import every, sums, write

from rlvr_jax.tasks import load


@pytest.mark.parametrize(
    ("row", "again", "how"),
    (
        ({"prompt": "Half?", "answer": "1/2"}, {"prompt": "Half?", "answer": "1/2"}, ""),
        ({"prompt": "Half?", "answer": "1/2"}, {"prompt": "Half? ", "answer": "1/2"}, ""),
        ({"prompt": "A\nb?", "answer": "1/2"}, {"prompt": "A \t\r\nb?\n\n", "answer": "1/2"}, ""),
        ({"prompt": "Half?", "answer": "1/2"}, {"prompt": "Half?", "answer": "\\frac12"}, "with"),
        ({"prompt": "Seven?", "answer": "7"}, {"prompt": "Seven?", "answer": "7.0"}, "with"),
        ({"prompt": "Seven?", "answer": "7.0"}, {"prompt": "Seven?", "answer": 7}, "with"),
        ({"prompt": "x", "answer": "(x+1)^2"}, {"prompt": "x", "answer": "x^2+2x+1"}, "with"),
        ({"prompt": "x", "answer": ["1", "2"]}, {"prompt": "x", "answer": "2"}, "with"),
        ({"prompt": "x", "answer": "2"}, {"prompt": "x", "answer": ["1", "2"]}, "with"),
    ),
)
def test_a_question_that_stands_twice_is_kept_once(tmp_path, row, again, how):
    path = write(tmp_path / "twice.jsonl", [*sums(40), row, again])
    said = rf"1 questions occur before {how}.* the first of .*, line 42"
    with pytest.warns(UserWarning, match=said):
        task = load(f"jsonl:{path}")
    assert len(every(task)) == 41


PYTHON = "What is printed?\nx = 6\nfor i in range(3):\n    x += 4\n{}x -= 4\nprint(x)"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (PYTHON.format(""), PYTHON.format("    ")),
        ("How many rows?\n0 1\n1 0", "How many rows?\n0\n1\n1\n0"),
        ("How long is 'a b'?", "How long is 'a  b'?"),
        ("How long is 'a b'?", "How long is 'a\tb'?"),
        ("Sort\n1 2\n3", "Sort\n1\n2 3"),
        ("Read\n\nthis", "Read\nthis"),
        ("Shape:\n *\n***", "Shape:\n*\n***"),
        ("    x = 1\nprint(x)", "x = 1\nprint(x)"),
    ],
)
def test_questions_that_space_tells_apart_are_two(tmp_path, first, second):
    rows = [{"prompt": first, "answer": 6}, {"prompt": second, "answer": 14}]
    task = load(f"jsonl:{write(tmp_path / 'two.jsonl', [*sums(40), *rows])}", instruction="")
    assert {prompt.text for prompt in every(task)} >= {first, second}
    # Both are held out, or neither is: they are nearly the same.
    alone = load(f"jsonl:{write(tmp_path / 'alone.jsonl', rows)}", instruction="")
    assert (len(alone.train), len(alone.test)) == (1, 1)


def test_space_tells_the_messages_before_a_question_apart(tmp_path):
    def row(before, answer):
        turns = [{"role": "system", "content": before}, {"role": "user", "content": "Next?"}]
        return {"prompt": turns, "answer": answer}

    rows = [row("0 1\n1 0", 6), row("0\n1\n1\n0", 14), row("0 1 \r\n1 0\n", 6)]
    with pytest.warns(UserWarning, match="1 questions occur before and were left out"):
        task = load(f"jsonl:{write(tmp_path / 'two.jsonl', [*sums(40), *rows])}")
    assert len(every(task)) == 42


CONTRADICTIONS = [{"prompt": f"Q{i}?", "answer": i + j} for i in range(7) for j in range(2)]


def test_questions_with_two_answers_are_refused_with_their_number(tmp_path):
    rows = [*sums(3), *CONTRADICTIONS]
    with pytest.raises(ValueError) as refused:
        load(f"jsonl:{write(tmp_path / 'two.jsonl', rows)}")
    said = str(refused.value)
    assert "but 7 questions have two answers: '0' (" in said
    assert said.count("line ") == 10 and "drop_contradictions=true" in said


def test_questions_with_two_answers_are_left_out_if_asked(tmp_path):
    path = write(tmp_path / "two.jsonl", [*sums(5), *CONTRADICTIONS])
    with pytest.warns(UserWarning, match=r"7 questions have two answers: .*; they were left"):
        task = load(f"jsonl:{path}", drop_contradictions=True)
    assert len(every(task)) == 5
