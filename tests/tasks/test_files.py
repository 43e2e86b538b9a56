"""Files of questions: splits, answers, golds, what is left out, and errors that name the line."""

import json

import pytest
from question_files import every, outcomes, sums, write

from rlvr_jax.tasks import Response, from_rows, load, self_check
from rlvr_jax.tasks.answer_form import BOXED


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
