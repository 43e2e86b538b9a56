"""Tasks with required forms: the numbers of their grades, on responses written by hand."""

import math

import pytest

from rlvr_jax import policy
from rlvr_jax.tasks import Prompt, Response, load
from rlvr_jax.tasks.forms import step_sums
from rlvr_jax.tasks.forms.step_sums import LineSteps
from rlvr_jax.tasks.forms.words import BASE_MODEL, VOCABULARY, words_of

NAMES = ("abstention", "cited_chains", "critiqued_sums", "judged_sums")
NAMES += ("step_sums", "tool_turns")


def graded(task, prompt, text, *, truncated=False):
    (grade,) = task.verify([prompt], [Response(text, truncated=truncated)])
    return grade


def first(task, kind):
    return next(prompt for prompt in task.train if prompt.kind == kind)


@pytest.mark.parametrize("name", NAMES)
def test_prompts_and_golds_are_of_the_vocabulary_and_depend_on_the_seed(name):
    task = load(name)
    assert task.base_model in (BASE_MODEL, step_sums.BASE_MODEL)
    for prompt in (*task.train[:200], *task.train[-200:], *task.test[:100]):
        for text in (prompt.text, prompt.gold):
            assert "".join(words_of(text)) == text
        assert len(words_of(prompt.gold)) < task.response_tokens
        assert graded(task, prompt, prompt.gold).outcome == 1
    assert load(name).train == task.train != load(name, seed=1).train


def test_the_tokenizer_reads_and_writes_the_words():
    reader = policy.tokenizer(BASE_MODEL)
    assert reader.get_vocab() == {word: id for id, word in enumerate(VOCABULARY)}
    text = "a=10;<CHUNK_0>\n99\\conclusion{True}add(3,4)=7"
    ids = reader(text, add_special_tokens=False)["input_ids"]
    assert [VOCABULARY[id] for id in ids] == words_of(text)
    assert reader.decode(ids, clean_up_tokenization_spaces=False) == text


@pytest.mark.parametrize(
    ("kind", "text", "outcome", "abstained", "confidence"),
    (
        ("answerable", "{answer};sure=7", 1, 0, 0.7),
        ("answerable", "unknown;sure=7", 0, 1, 0.7),
        ("answerable", "100;sure=0", 0, 0, 0),
        ("unanswerable", "unknown;sure=10", 1, 1, 1),
        ("unanswerable", "5;sure=3", 0, 0, 0.3),
        # Both an answer and an abstention: an answer.
        ("unanswerable", "unknown;5;sure=3", 0, 0, 0.3),
        ("unanswerable", "unknown", 1, 1, None),
        ("unanswerable", "unknown;sure=11", 1, 1, None),
        ("answerable", "{answer};sure=3;sure=4", 1, 0, 0.4),
        ("answerable", "", 0, 0, None),
    ),
)
def test_an_abstention_has_no_number_and_a_confidence_is_stated(
    kind, text, outcome, abstained, confidence
):
    task = load("abstention")
    prompt = first(task, kind)
    grade = graded(task, prompt, text.format(answer=prompt.answer))
    assert grade.outcome == outcome
    assert grade.info["answerable"] == (kind == "answerable")
    assert grade.info["abstained"] == abstained
    stated = grade.info["confidence"]
    assert math.isnan(stated) if confidence is None else stated == confidence


def test_a_question_is_unanswerable_where_no_value_is_given():
    for prompt in load("abstention").train[:100]:
        *given, name = prompt.text.removesuffix("?").split(";")
        values = dict(part.split("=") for part in given)
        kind = "answerable" if name in values else "unanswerable"
        assert (prompt.kind, prompt.answer) == (kind, values.get(name, "unknown"))


def test_each_problem_has_a_correct_solution_and_one_with_a_slip():
    task = load("judged_sums")
    for right, slip in zip(task.train[:200:2], task.train[1:200:2], strict=True):
        problem, _, lines = right.text.removesuffix(";verdict?").partition("?")
        assert slip.text.startswith(f"{problem}?") and (right.answer, slip.answer) == (True, False)
        assert [eval_line(line) for line in lines.split(";")] == [True, True]
        assert int(lines.rpartition("=")[2]) == sum(map(int, problem.split("+")))
        slipped = slip.text.removesuffix(";verdict?").partition("?")[2].split(";")
        assert sorted(eval_line(line) for line in slipped) == [False, True]


def eval_line(line):
    left, result = line.split("=")
    return sum(map(int, left.split("+"))) == int(result)


def test_problems_of_judged_and_critiqued_sums_are_held_out_alike():
    def triples(prompts):
        texts = (prompt.text.partition("?")[0] for prompt in prompts)
        return {tuple(sorted(map(int, text.split("+")))) for text in texts}

    judged, critiqued = load("judged_sums"), load("critiqued_sums")
    assert triples(judged.train) == triples(critiqued.train)
    assert triples(judged.test) == triples(critiqued.test)
    assert not triples(judged.train) & triples(judged.test)


def test_a_verdict_or_a_critique_is_graded_by_its_parser():
    judged, critiqued = load("judged_sums"), load("critiqued_sums")
    prompt = first(judged, "slip")
    outcomes = [graded(judged, prompt, text).outcome for text in ("4;9\nWRONG", "4;9\nRIGHT", "4")]
    assert outcomes == [1, 0, 0]
    verdicts = [prompt for prompt in critiqued.train if prompt.kind == "verdict"][:2]
    assert [prompt.answer for prompt in verdicts] == [True, False]
    assert graded(critiqued, verdicts[1], "4;9\\conclusion{False}").outcome == 1
    assert graded(critiqued, verdicts[1], "4;9\\conclusion{True}").outcome == 0
    total = first(critiqued, "sum")
    assert graded(critiqued, total, total.answer).outcome == 1
    assert graded(critiqued, total, total.answer, truncated=True).outcome == 0
    assert critiqued.mixture == {"sum": 0.8, "verdict": 0.2}


def test_a_written_critique_is_correct_and_has_the_result_of_each_line():
    written = load("critiqued_sums", written_critiques=True)
    for prompt in written.train[:20]:
        critique = "".join(prompt.solution)
        assert graded(written, prompt, critique).outcome == 1
        first, second, third = map(int, prompt.text.partition("?")[0].split("+"))
        assert critique.startswith(f"{first + second};{first + second + third}\\conclusion")
    assert {prompt.kind for prompt in written.train} == {"verdict"}
    assert written.test == load("critiqued_sums").test


def test_lines_of_a_sum_lead_to_the_next_state_or_end_the_episode():
    environment = LineSteps()
    start, _ = environment.start(Prompt("4+17+6+9?"))
    after = environment.reply(start, "4+17=21;21+6=27")
    assert (after.text, after.done) == ("27+9?", False)
    assert environment.reply(after.state, "27+9=36").outcome == 1
    for wrong in ("27+9=35", "9+27=36", "27+9=36;36+0=36", "36", ""):
        reply = environment.reply(after.state, wrong)
        assert (reply.text, reply.done, reply.outcome) == (None, True, 0)


@pytest.mark.parametrize(
    ("facts", "answer", "numbers"),
    (
        # precision, recall, format, evidence; the chain of a is in chunks 0 and 2.
        ("a=c<CHUNK_0>;c=7<CHUNK_2>", "7", (1, 1, 1, 1)),
        ("a=c;c=7<CHUNK_2>", "7", (1, 0.5, 1, 0.5)),
        # The statement next to the answer has no evidence: nothing is reached.
        ("a=c<CHUNK_0>;c=7", "7", (1, 0.5, 1, 0)),
        ("a=c<CHUNK_0>;c=7<CHUNK_2><CHUNK_3><CHUNK_9>", "7", (0.5, 1, 1, 1)),
        ("a=c<CHUNK_0>;c=7<CHUNK_2>", "8", (1, 1, 1, 0)),
        # The entity between the question and the answer is not named.
        ("<CHUNK_0><CHUNK_2>", "7", (1, 1, 1, 0)),
        ("", "7", (0, 0, 1, 0)),
    ),
)
def test_citations_and_evidence_of_a_chain(facts, answer, numbers):
    task, prompt = load("cited_chains"), chain_prompt()
    text = f"<useful_chunks>{facts}</useful_chunks><answer>{answer}</answer>"
    grade = graded(task, prompt, text)
    assert tuple(grade.info[name] for name in task.rewards) == numbers
    assert grade.outcome == (answer == "7")


@pytest.mark.parametrize(
    "text",
    (
        "<useful_chunks>a=c<CHUNK_0><answer>7</answer>",
        "<useful_chunks>a=c<CHUNK_0></useful_chunks><answer>7",
        "<useful_chunks></useful_chunks><answer>7</answer><answer>7</answer>",
        "",
    ),
)
def test_a_broken_format_has_no_evidence_and_no_outcome(text):
    grade = graded(load("cited_chains"), chain_prompt(), text)
    assert (grade.outcome, grade.info["format"], grade.info["evidence"]) == (0, 0, 0)


def chain_prompt():
    facts = ["a=c", "f=41", "c=7", "d=a", "b=5", "e=b"]
    answer = {"value": "7", "chain": ["a", "c"], "reference": [0, 2], "facts": facts}
    return Prompt("…;a?", answer, "2_facts")


@pytest.mark.parametrize(
    ("kind", "text", "numbers", "outcome"),
    (
        # Open: add = 7 and mul = 49.
        ("2_open", "{add}{mul}", (2, 2, None), 1),
        ("2_open", "{add}", (1, 1, None), 1),
        ("2_open", "{add}{add}", (2, 1, None), 0),
        ("2_open", "<tool_call>add(1,1)</tool_call>", (1, 0, None), 0),
        ("2_open", "<tool_call>add(2,5)", (0, 0, -0.3), 0),
        ("2_open", "<answer>49</answer>", (0, 0, 1 / 3), 0),
        ("2_open", "", (0, 0, -0.5), 0),
        ("2_open", "7", (0, 0, 0), 0),
        ("0_open", "<answer>49</answer>", (0, 0, 1), 1),
        ("0_open", "7", (0, 0, 0.5), 0),
        ("0_open", "{mul}", (1, 0, None), 0),
    ),
)
def test_a_turn_is_graded_by_the_open_questions_that_its_calls_solve(kind, text, numbers, outcome):
    task = load("tool_turns")
    unsolved = {"add": ["7"], "mul": ["49"]} if kind == "2_open" else {}
    prompt = Prompt("…", {"value": "49", "unsolved": unsolved}, kind)
    calls = {"add": "<tool_call>add(2,5)</tool_call>", "mul": "<tool_call>mul(7,7)</tool_call>"}
    grade = graded(task, prompt, text.format(**calls))
    found = tuple(grade.info[name] for name in task.rewards)
    assert found[:2] == numbers[:2] and grade.outcome == outcome
    assert math.isnan(found[2]) if numbers[2] is None else found[2] == pytest.approx(numbers[2])


def test_the_state_of_a_turn_has_the_solved_calls():
    for prompt in load("tool_turns").train[:50]:
        _, *done = prompt.text.split(";")
        left = sum(map(len, prompt.answer["unsolved"].values()))
        assert len(done) + left == 3 and prompt.kind == f"{left}_open"
        assert all(eval_call(line) for line in done)


def eval_call(line):
    tool, a, b, result = line.replace("(", " ").replace(",", " ").replace(")=", " ").split()
    return {"add": int(a) + int(b), "mul": int(a) * int(b)}[tool] == int(result)
