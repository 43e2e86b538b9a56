"""Published schemas, named columns, marks and levels of files of questions."""

import pytest
from question_files import every, outcomes, write

from rlvr_jax.tasks import load, self_check


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
