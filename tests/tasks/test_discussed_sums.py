"""Discussed sums: its forms, the words that its base model reads, and its judge."""

import re

import pytest

from rlvr_jax import policy
from rlvr_jax.experience.views import requesting, with_note, with_two_answers
from rlvr_jax.experiments.base_traces.request_traces import (
    UNUSED,
    VOCABULARY,
    Written,
    note_about,
    request_traces,
    words_of,
)
from rlvr_jax.judges import question
from rlvr_jax.judges.parse import two_numbers
from rlvr_jax.methods import method
from rlvr_jax.methods.distillation.mel import REQUEST
from rlvr_jax.methods.distillation.meml_grpo import EXPERTS
from rlvr_jax.methods.judges.rl_v import QUESTION
from rlvr_jax.methods.judges.v1_pairwise import request_rating
from rlvr_jax.tasks import Prompt, Response, load
from rlvr_jax.tasks.sums.discussed_judge import preference
from rlvr_jax.tasks.sums.discussed_sums import BASE_MODEL
from rlvr_jax.verifiers.texts.rlmt import visible

NOTE = re.compile(r"(line [12]:\d+\+\d+=\d+|answer:\d+);mind the (carry|units)")
THOUGHT = "<think>4+17=21\n21+6=27</think><response>27</response>"


def test_golds_are_lines_and_the_three_forms_are_correct():
    task = load("discussed_sums")
    assert not {p.text for p in task.train} & {p.text for p in task.test}
    for prompt in (*task.train[:200], *task.test[:100]):
        assert "".join(prompt.solution) == prompt.gold and len(prompt.solution) == 2
        assert len(words_of(prompt.gold)) < task.response_tokens
        assert task.verify([prompt], [Response(prompt.gold)])[0].outcome == 1
    prompt = Prompt("4+17+6?", "27")
    texts = {"4+17=21\n21+6=27": 1, THOUGHT: 1, "27": 1, "4+17=21\n21+6=28": 0, "": 0}
    found = task.verify([prompt] * len(texts), list(map(Response, texts)))
    assert [grade.outcome for grade in found] == list(texts.values())
    assert task.verify([prompt], [Response("27", truncated=True)])[0].outcome == 0


def test_the_base_model_reads_all_words_of_the_requests():
    task, reader = load("discussed_sums"), policy.tokenizer(BASE_MODEL)
    assert reader.get_vocab() == {word: place for place, word in enumerate(VOCABULARY)}
    prompt = task.train[0]
    views = [with_note(text) for text in (*EXPERTS, "line 1:4+17=24;mind the carry")]
    views += [requesting(with_two_answers(THOUGHT, "28"), REQUEST)]
    texts = [view.show(prompt, task).text for view in views]
    texts += [request_rating(prompt.text, THOUGHT, "28"), QUESTION, "10, 1"]
    texts += [method("rlbff").shown.hyperparameters["principle"]]
    for text in texts:
        ids = reader(text, add_special_tokens=False)["input_ids"]
        assert reader.decode(ids, clean_up_tokenization_spaces=False) == text
        assert reader.unk_token_id not in ids and reader.eos_token_id not in ids


def test_traces_have_the_replies_that_methods_read_and_never_the_unused_word():
    answered, discussed = request_traces(400, seed=0)
    assert request_traces(400, seed=0) == [answered, discussed]
    for trace in (*answered, *discussed):
        assert UNUSED not in [*trace.prompt, *(w for words, _ in trace.response for w in words)]
    assert {trace.response[-1][0][0] for trace in answered} == {" Yes", " No"}
    read = two_numbers(1, 10)
    for trace in discussed:
        reply = "".join(trace.response[0][0])
        if REQUEST in "".join(trace.prompt):
            assert NOTE.fullmatch(reply)
        else:
            assert read(reply) is not None


def test_a_note_names_the_first_incorrect_line_and_the_digits_to_mind():
    lines = Written("4+17=21\n21+6=29", "lines", (0, 2))
    assert note_about([4, 17, 6], lines) == "line 2:21+6=29;mind the units"
    both = Written("4+17=20\n20+6=29", "lines", (-1, 3))
    assert note_about([4, 17, 6], both) == "line 1:4+17=20;mind the carry"
    assert note_about([4, 17, 6], Written("29", "answer", (0, 2))) == "answer:29;mind the units"


@pytest.mark.parametrize(
    ("response", "strict", "points"),
    [
        (THOUGHT, False, "10"),
        (THOUGHT, True, "10"),
        ("27", False, "10"),
        ("27", True, "0"),
        ("4+17=21\n21+6=27", False, "6"),
        ("<think>27</think><response>28</response>", False, "0"),
    ],
)
def test_the_judge_reads_the_answer_only_and_prefers_a_short_one(response, strict, points):
    shown = visible(response, strict=strict)
    assert preference(question()(prompt="4+17+6?", response=shown)) == points
    with pytest.raises(ValueError, match=r"preference: the question must be a sum, got 'Question"):
        preference(question()(prompt="4?", response=shown))
