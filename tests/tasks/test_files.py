"""Files of questions: splits, golds, schemas, what is left out, and errors that name the line."""

import json
import math

import numpy as np
import pytest

from rlvr_jax.tasks import Prompt, Response, from_rows, graded_one_by_one, load, self_check
from rlvr_jax.tasks.answer_form import BOXED


def write(path, rows):
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def sums(count):
    return [{"prompt": f"What is {i} + 1?", "answer": i + 1} for i in range(count)]


@pytest.fixture
def path(tmp_path):
    return write(tmp_path / "sums.jsonl", sums(60))


def outcomes(task, prompt, *texts):
    return [g.outcome for g in task.verify([prompt] * len(texts), [Response(t) for t in texts])]


def every(task):
    return [*task.train, *task.test]


def test_answers_are_graded_by_the_mathematics_verifier(path):
    task = load(f"jsonl:{path}")
    prompt = task.train[0]
    texts = (f"so \\boxed{{{prompt.answer}}}", f"\\boxed{{{prompt.answer}.0}}", "\\boxed{-5}", "")
    grades = task.verify([prompt] * 4, [Response(text) for text in texts])
    assert [grade.outcome for grade in grades] == [1, 1, 0, 0]
    assert [grade.answer for grade in grades] == [prompt.answer, prompt.answer, "-5", None]
    assert [grade.stage for grade in grades] == ["exact", "exact", "exact", "no answer"]


def test_the_boxed_answer_is_the_gold_and_the_self_check_is_content(path):
    task = load(f"jsonl:{path}")
    assert task.train[0].gold == f"\\boxed{{{task.train[0].answer}}}"
    assert self_check(task).problems == ()
    assert task.notes == ()


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


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        ("<answer>7</answer>", "7"),
        ("<think>6 + 1</think>\n<answer> 7 </answer>", "7"),
        ("<answer>6</answer> no, <answer>7</answer>", "7"),
        ("<answer>\\boxed{7}</answer>", "7"),
        ("\\boxed{6}, so <answer>7</answer>", "7"),
        ("<ANSWER>\n7\n</ANSWER>", "7"),
        ("<answer>6</answer> #### 7", "7"),
        ("<answer></answer> \\boxed{7}", "7"),
        ("the <answer> is <answer>7</answer>", "7"),
    ],
)
def test_an_answer_stands_in_tags(tmp_path, answer, wanted):
    path = write(tmp_path / "a.jsonl", [{"prompt": "Six and one?", "answer": answer}, *sums(2)])
    found = next(prompt for prompt in every(load(f"jsonl:{path}")) if "Six" in prompt.text)
    assert found.answer == wanted


@pytest.mark.parametrize(
    ("instruction", "text"),
    [
        ("Answer in one sentence.", "now?\n\nAnswer in one sentence."),
        (" Think.", "now? Think."),
        ("\nThink.", "now?\nThink."),
        ("\tThink.", "now?\tThink."),
        ("", "now?"),
        ("(Be brief.)", "now?\n\n(Be brief.)"),
    ],
)
def test_an_instruction_is_parted_from_the_question(tmp_path, instruction, text):
    rows = [{"prompt": "now?", "answer": 1}, {"prompt": "then?\n", "answer": 2}]
    path = write(tmp_path / "a.jsonl", rows)
    for task in (
        load(f"jsonl:{path}", instruction=instruction),
        from_rows(rows, instruction=instruction),
        from_rows(rows, instruction=instruction, verify=lambda prompts, responses: []),
    ):
        assert {prompt.text for prompt in every(task)} == {text, f"then?\n{instruction}"}


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


def test_half_held_out_is_about_half(tmp_path):
    task = load(f"jsonl:{write(tmp_path / 'many.jsonl', sums(1000))}", held_out=0.5)
    # Five standard deviations of a binomial count are 79.
    assert abs(len(task.test) - 500) < 80


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("held_out", [1e-9, 0.5, 1 - 1e-9])
def test_a_file_of_few_questions_has_both_splits(tmp_path, count, held_out):
    path = write(tmp_path / "few.jsonl", sums(count))
    task = load(f"jsonl:{path}", held_out=held_out)
    assert len(task.train) >= 1 and len(task.test) >= 1 and len(every(task)) == count


def test_one_question_needs_others_to_evaluate(tmp_path):
    path = write(tmp_path / "one.jsonl", sums(1))
    with pytest.raises(ValueError, match=r"at least two questions, .* got 1\. .*\(test_path=…\)"):
        load(f"jsonl:{path}")
    test = write(tmp_path / "test.jsonl", sums(3)[1:])
    task = load(f"jsonl:{path}", test_path=test)
    assert (len(task.train), len(task.test)) == (1, 2)


def test_a_second_file_is_the_test_split_and_its_questions_leave_train(tmp_path, path):
    second = write(tmp_path / "test.jsonl", sums(4))
    with pytest.warns(UserWarning, match="4 questions of train are also in test"):
        task = load(f"jsonl:{path}", test_path=second)
    assert (len(task.train), len(task.test)) == (56, 4)


def test_a_trailing_space_hides_no_question_from_the_test_split(tmp_path, path):
    rows = [{"prompt": f" {row['prompt']} ", "answer": row["answer"]} for row in sums(4)]
    second = write(tmp_path / "test.jsonl", rows)
    with pytest.warns(UserWarning, match="4 questions of train are also in test"):
        task = load(f"jsonl:{path}", test_path=second)
    assert (len(task.train), len(task.test)) == (56, 4)


def test_kinds_golds_and_the_instruction_are_kept(tmp_path):
    row = {"prompt": "A?", "answer": "{1, 2}", "kind": "sets", "gold": "is \\boxed{\\{2, 1\\}}"}
    second = write(tmp_path / "test.jsonl", [row])
    first = write(tmp_path / "train.jsonl", sums(1))
    prompt = load(f"jsonl:{first}", test_path=second, instruction=" Box it.").test[0]
    assert (prompt.text, prompt.kind, prompt.gold) == ("A? Box it.", "sets", row["gold"])


def test_a_kind_may_come_after_many_rows_without_one(tmp_path):
    rows = [*sums(150), {"prompt": "Late?", "answer": 1, "kind": "late"}]
    kinds = {prompt.kind for prompt in every(load(f"jsonl:{write(tmp_path / 'a.jsonl', rows)}"))}
    assert kinds == {"", "late"}


def test_questions_that_cannot_be_graded_are_dropped_with_a_count(tmp_path):
    rows = [*sums(40), {"prompt": "Impossible?", "answer": "x" * 600}]
    with pytest.warns(UserWarning, match=r"1 of \d+ questions were dropped.*line 41"):
        task = load(f"jsonl:{write(tmp_path / 'some.jsonl', rows)}")
    assert len(every(task)) == 40


def test_a_wrong_gold_is_an_error_of_its_line(tmp_path):
    rows = [*sums(1), {"prompt": "A?", "answer": "3", "gold": "\\boxed{4}"}]
    with pytest.raises(ValueError, match=r"line 2: 'gold' must be .* answer '3'.* reads '4'"):
        load(f"jsonl:{write(tmp_path / 'wrong.jsonl', rows)}")


@pytest.mark.parametrize(
    ("row", "why"),
    (
        ({"answer": "1"}, "without a prompt"),
        ({"prompt": " ", "answer": "1"}, "without a prompt"),
        ({"prompt": None, "answer": "1"}, "without a prompt"),
        ({"prompt": [{"role": "system", "content": "A"}], "answer": "1"}, "without a prompt"),
        ({"prompt": "A?"}, "without an answer"),
        ({"prompt": "A?", "answer": None}, "without an answer"),
        ({"prompt": "A?", "answer": ""}, "without an answer"),
        ({"prompt": "A?", "answer": []}, "without an answer"),
        ({"prompt": "A?", "answer": [None, ""]}, "without an answer"),
        ('{"prompt": "A?", "answer": NaN}', "without an answer"),
        ('{"prompt": "A?", "answer": Infinity}', r"whose answer is .*\(infinite numbers\)"),
        ({"prompt": "A?", "answer": {"a": 1}}, r"whose answer is of another kind \(dicts\)"),
        ({"prompt": "A?", "answer": [[1]]}, r"whose answer is of another kind \(lists\)"),
        ({"prompt": {"a": 1}, "answer": 1}, r"whose prompt is of another kind \(dicts\)"),
        ({"prompt": ["a"], "answer": 1}, r"whose prompt is of another kind \(lists\)"),
        ({"prompt": [{"content": "a"}], "answer": 1}, r"\(messages without a role\)"),
        ({"prompt": "A?", "answer": "1", "kind": [1]}, r"whose kind is of another kind \(lists\)"),
        ('{"prompt": "A\\ud800?", "answer": 1}', "whose prompt has half a character"),
        ('{"prompt": "A?", "answer": "\\ud800"}', "whose answer has half a character"),
    ),
)
def test_a_row_that_cannot_be_used_is_counted_and_named(tmp_path, row, why):
    path = write(tmp_path / "bad.jsonl", [*sums(3), "", row])
    said = rf"1 of 4 rows were left out: 1 .*{why}.*\(the first: .*bad.jsonl, line 5\)"
    with pytest.warns(UserWarning, match=said):
        assert len(every(load(f"jsonl:{path}"))) == 3


def test_rows_that_are_left_out_are_told_in_one_sentence(tmp_path):
    rows = [*sums(3), {"prompt": "A?"}, {"answer": 1}, {"prompt": "B?", "answer": None}]
    said = r"3 of 6 rows were left out: 2 without an answer \(the first: .*line 4\), 1 without a"
    with pytest.warns(UserWarning, match=said) as told:
        load(f"jsonl:{write(tmp_path / 'bad.jsonl', rows)}")
    assert len(told) == 1


@pytest.mark.parametrize(
    ("answer", "kept"),
    (
        (str(10**400), str(10**400)),
        ("12", "12"),
        ("0.10", "0.10"),
        ("7.0", "7.0"),
        ("1e3", "1000"),
        ("2.5e-3", "0.0025"),
        ("-0", "0"),
        ("true", "True"),
        ('["2"]', "2"),
        ('["2", 3]', ["2", "3"]),
        ('["2", null, ""]', "2"),
        (r'"[\"5\", \"6\"]"', ["5", "6"]),
        ('" 8 "', "8"),
        ('"so\\n#### 72"', "72"),
        (r'"so $\\boxed{3}$ and $\\boxed{\\frac{1}{2}}$."', r"\frac{1}{2}"),
        (r'"\\boxed{4} #### 5"', "5"),
    ),
)
def test_answers_are_texts_numbers_and_lists(tmp_path, answer, kept):
    rows = [*sums(3), f'{{"prompt": "A?", "answer": {answer}}}']
    prompts = every(load(f"jsonl:{write(tmp_path / 'a.jsonl', rows)}"))
    assert [p.answer for p in prompts if p.text.startswith("A?")] == [kept]


def test_an_integer_longer_than_python_reads_is_dropped_with_a_count(tmp_path):
    rows = [*sums(3), f'{{"prompt": "A?", "answer": {"9" * 5000}}}']
    with pytest.warns(UserWarning, match="1 of 4 questions were dropped"):
        load(f"jsonl:{write(tmp_path / 'a.jsonl', rows)}")


def test_each_of_several_answers_is_right_and_the_gold_is_one_that_can_be_read(tmp_path):
    rows = [*sums(3), {"prompt": "A?", "answer": ["x" * 600, "1/2", "3"]}]
    task = load(f"jsonl:{write(tmp_path / 'a.jsonl', rows)}")
    (prompt,) = (prompt for prompt in every(task) if prompt.text.startswith("A?"))
    assert prompt.gold == "\\boxed{1/2}"
    assert outcomes(task, prompt, "\\boxed{3}", "\\boxed{0.5}", "\\boxed{4}") == [1, 1, 0]


def schema(name, count=6):
    """Rows of published data sets, of which the i-th has the answer i."""
    requests = "The last line should be of the form Answer: $Answer (without quotes).\n\nQ{i}"
    shapes = {
        "verl": lambda i: {
            "data_source": "lab/set",
            "prompt": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": f"Q{i}"},
            ],
            "ability": "math",
            "reward_model": {"style": "rule", "ground_truth": str(i)},
            "extra_info": {"index": i},
        },
        "DAPO-Math": lambda i: {
            "data_source": "math_dapo",
            "prompt": [{"role": "user", "content": requests.format(i=i)}],
            "reward_model": {"ground_truth": str(i), "style": "rule-lighteval/MATH_v2"},
        },
        "TRL": lambda i: {"prompt": f"Q{i}", "solution": f"$\\boxed{{{i}}}$"},
        "GSM8K": lambda i: {"question": f"Q{i}", "answer": f"It is <<{i}*1={i}>>.\n#### {i}"},
        "MATH": lambda i: {
            "problem": f"Q{i}",
            "level": "Level 3",
            "type": "Algebra",
            "solution": f"First $\\boxed{{9}}$, so $\\boxed{{{i}}}$.",
        },
        "Open-R1 and MATH-500": lambda i: {
            "problem": f"Q{i}",
            "solution": "Long.",
            "answer": f"{i}",
            "uuid": f"a{i}",
            "messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}],
        },
    }
    return [shapes[name](i) for i in range(count)]


@pytest.mark.parametrize(
    "name", ["verl", "DAPO-Math", "TRL", "GSM8K", "MATH", "Open-R1 and MATH-500"]
)
def test_published_schemas_are_recognised_and_said_once(tmp_path, name):
    task = load(f"jsonl:{write(tmp_path / 'a.jsonl', schema(name))}")
    assert sorted(prompt.answer for prompt in every(task)) == list("012345")
    assert [f"read as {name}'s:" in note for note in task.notes].count(True) == 1
    assert self_check(task).problems == ()


def test_what_of_a_schema_is_not_read_and_where_answers_stood_is_said(tmp_path):
    (note,) = load(f"jsonl:{write(tmp_path / 'a.jsonl', schema('MATH'))}").notes
    assert "6 answers are in the last box; not read: level, type" in note


def test_messages_stand_before_the_prompt_and_the_source_is_its_kind(tmp_path):
    prompt = load(f"jsonl:{write(tmp_path / 'a.jsonl', schema('verl'))}").train[0]
    assert prompt.messages == ({"role": "system", "content": "Be brief."},)
    assert (prompt.text[:2], prompt.kind) == ("Q0", "lab/set")


def test_questions_that_ask_for_a_last_line_are_paid_for_it(tmp_path):
    task = load(f"jsonl:{write(tmp_path / 'a.jsonl', schema('DAPO-Math'))}")
    prompt = task.train[0]
    assert prompt.gold == f"Answer: {prompt.answer}" and "boxed" not in prompt.text
    texts = (f"So\nAnswer: {prompt.answer}", f"\\boxed{{{prompt.answer}}}", "Answer: 77", "77")
    assert outcomes(task, prompt, *texts) == [1, 1, 0, 0]
    assert task.notes[-1] == "6 questions ask for their answer on a line, which is read"


def test_an_option_that_does_not_read_what_is_asked_for_is_said(tmp_path):
    path = write(tmp_path / "a.jsonl", schema("DAPO-Math"))
    with pytest.warns(UserWarning, match="request their answer on a line .* answer_line = false"):
        load(f"jsonl:{path}", answer_line=False)


def test_questions_that_ask_for_a_mark_are_paid_for_it(tmp_path):
    rows = [{"question": f'Q{i}? Output the answer after "####".', "answer": i} for i in range(5)]
    task = load(f"jsonl:{write(tmp_path / 'a.jsonl', rows)}")
    prompt = task.train[0]
    texts = (f"so\n#### {prompt.answer}", f"#### 5\n#### {prompt.answer} ", "#### 77", "####", "7")
    assert outcomes(task, prompt, *texts) == [1, 1, 0, 0, 0]
    assert prompt.gold == f"#### {prompt.answer}"


@pytest.mark.parametrize("columns", [{"prompt": "ask", "answer": "a.b"}, "prompt=ask,answer=a.b"])
def test_columns_are_named_and_a_dot_goes_into_a_structure(tmp_path, columns):
    rows = [{"ask": f"Q{i}", "a": {"b": i}, "level": f"Level {i}", "how": "x\ny"} for i in range(4)]
    path = write(tmp_path / "a.jsonl", rows)
    task = load(f"jsonl:{path}", columns=columns)
    assert sorted(prompt.answer for prompt in every(task)) == list("0123")
    assert task.notes == ("columns are read: prompt=ask, answer=a.b; not read: level, how",)


def test_levels_and_worked_solutions_can_be_named(tmp_path):
    rows = [
        {"q": f"Q{i}", "a": i, "level": f"Level {i}", "how": "x\ny", "tip": "z"} for i in (1, 2)
    ]
    named = ["prompt=q,answer=a", "level=level", "solution=how", "hints=tip", "kind=level"]
    (prompt, _) = sorted(
        every(load(f"jsonl:{write(tmp_path / 'a.jsonl', rows)}", columns=named)),
        key=lambda prompt: prompt.text,
    )
    assert (prompt.meta, prompt.solution, prompt.hints) == ({"level": 1}, ("x\n", "y"), ("z",))
    assert prompt.kind == "Level 1"


def test_white_space_is_part_of_the_steps_of_a_solution(tmp_path):
    rows = [{"prompt": f"Q{i}", "answer": i, "how": ["x\n", "\n", "", None, "y"]} for i in (1, 2)]
    task = load(f"jsonl:{write(tmp_path / 'a.jsonl', rows)}", columns=["solution=how"])
    assert {prompt.solution for prompt in every(task)} == {("x\n", "\n", "y")}


@pytest.mark.parametrize(
    ("options", "message"),
    (
        ({}, r"must have a column for the prompt .* --columns prompt=question.* got ask, result"),
        ({"columns": "prompt=ask"}, "must have a column for the answer"),
        ({"columns": "prompt=ask,answer=resul"}, "got answer=resul; closest: result"),
        ({"columns": {"promt": "ask"}}, "columns must be among .*, got 'promt'; closest: prompt"),
        ({"columns": ["ask"]}, "columns must be written name=value, got 'ask'"),
    ),
)
def test_columns_that_are_missing_are_named(tmp_path, options, message):
    path = write(tmp_path / "a.jsonl", [{"ask": "Q", "result": 1}])
    with pytest.raises(ValueError, match=message):
        load(f"jsonl:{path}", **options)


def test_a_mark_of_ones_own_and_rows_without_it(tmp_path):
    rows = [{"prompt": f"Q{i}", "answer": f"a => {i}"} for i in range(3)]
    rows.append({"prompt": "Q", "answer": "none"})
    path = write(tmp_path / "a.jsonl", rows)
    with pytest.warns(UserWarning, match="1 without '=>' in the answer .*line 4"):
        task = load(f"jsonl:{path}", answer_after="=>")
    assert sorted(prompt.answer for prompt in every(task)) == list("012")


@pytest.mark.parametrize(
    ("option", "answer", "response"),
    (
        ({"choice": True}, "B", "The answer is (B)."),
        ({"percent_is_number": True}, "50", "\\boxed{50\\%}"),
        ({"relative_tolerance": 0.1}, "1.00", "\\boxed{1.05}"),
        ({"answer_line": True}, "5", "Answer: 5"),
        ({"last_number": True}, "5", "it is 5"),
        ({"require_think": True}, "5", "a</think>\\boxed{5}"),
    ),
)
def test_options_of_the_verifier_reach_it(tmp_path, option, answer, response):
    rows = [{"prompt": f"Q{i}", "answer": answer} for i in range(3)]
    path = write(tmp_path / "a.jsonl", rows)
    graded = [
        outcomes(task, task.train[0], response)
        for task in (load(f"jsonl:{path}"), load(f"jsonl:{path}", **option))
    ]
    assert graded[1] == [1]
    assert graded[0] == [float("require_think" in option)]
    if "require_think" in option:
        task = load(f"jsonl:{path}", **option)
        assert outcomes(task, task.train[0], "\\boxed{5}") == [0]
        assert self_check(task).problems == ()


@pytest.mark.parametrize(
    ("row", "message"),
    (
        ("{", "must be a JSON object, got Expecting"),
        ("[1]", "must be a JSON object, got list. Read a file that is one array with json:"),
        ("[" * 100_000, "must be a JSON object, got maximum recursion depth"),
    ),
)
def test_a_bad_line_is_named(tmp_path, row, message):
    path = write(tmp_path / "bad.jsonl", [*sums(2), "", row])
    with pytest.raises(ValueError, match=rf"bad.jsonl, line 4: .*{message}"):
        load(f"jsonl:{path}")


def test_a_share_outside_its_range_is_refused(path):
    with pytest.raises(ValueError, match=r"held_out must be in \(0, 1\), got 1.5"):
        load(f"jsonl:{path}", held_out=1.5)


def test_splits_are_told_by_the_names_of_files_in_a_folder(tmp_path):
    write(tmp_path / "train-00000-of-00002.jsonl", sums(3))
    write(tmp_path / "train-00001-of-00002.jsonl", sums(8)[3:])
    write(tmp_path / "test.jsonl", sums(10)[8:])
    task = load(f"jsonl:{tmp_path}")
    assert (len(task.train), len(task.test)) == (8, 2)
    assert task.notes == ("the files' names define the splits: test is test.jsonl",)
    other = tmp_path / "other.json"
    other.write_text(json.dumps(sums(12)[10:]))
    write(tmp_path / "more.jsonl", sums(12)[10:])
    task = load(f"jsonl:{tmp_path}", test_path=str(tmp_path / "more.jsonl"))
    assert (len(task.train), len(task.test)) == (8, 2)
    assert task.notes == ("test_path is given, so test.jsonl is not read",)


def rows_of_prompts(task):
    return sorted((prompt.text, prompt.answer) for prompt in every(task))


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
