"""Calculations: the task with a calculator, and what its base model can and cannot do."""

import numpy as np
import pytest
import training_runs

from rlvr_jax import policy
from rlvr_jax.runs.loop import evaluate_run
from rlvr_jax.runs.step import collect
from rlvr_jax.tasks import Response, load
from rlvr_jax.tasks.sums.calculations import BASE_MODEL, VOCABULARY, calculations, calculator_calls


def graded(text, *, number=0, truncated=False, **options):
    task = calculations(**options)
    prompt = next(p for p in task.train if p.text == ("37*46=", "37+46=")[number])
    (grade,) = task.verify([prompt], [Response(text, truncated=truncated)])
    return grade


@pytest.mark.parametrize(
    ("text", "outcome", "calls"),
    (
        ("1702", 1, 0),
        ("[37*46]1702;1702", 1, 1),
        ("[37*46]1702;[37*46]1702;1702", 1, 2),
        ("[37*46]1702;1703", 0, 1),
        ("[37*46]1702;", 0, 1),
        ("[37*46]1702", 0, 1),
        ("01702", 0, 0),
        ("", 0, 0),
    ),
)
def test_the_answer_stands_behind_the_last_reply_and_calls_are_paid_for(text, outcome, calls):
    grade = graded(text)
    assert grade.outcome == outcome and grade.info == {"calls": calls}
    assert grade.reward == pytest.approx(outcome - 0.1 * calls)
    assert graded(text, call_cost=0.0).reward == outcome


def test_what_was_cut_is_no_answer():
    assert graded("83", number=1).outcome == 1
    grade = graded("83", number=1, truncated=True)
    assert grade.outcome == 0 and grade.answer is None


def test_pairs_of_numbers_are_in_one_split_alone():
    splits = {name: calculations(name) for name in ("dev", "test")}
    seen = {}
    parts = {"train": splits["dev"].train, **{name: task.test for name, task in splits.items()}}
    for name, prompts in parts.items():
        for prompt in prompts:
            pair = frozenset(int(word) for word in prompt.text[:-1].replace("*", "+").split("+"))
            assert seen.setdefault(pair, name) == name
    assert len(seen) == 90 * 91 // 2
    assert splits["dev"].train == splits["test"].train
    assert {prompt.kind for prompt in splits["test"].test} == {"sum", "product"}


def test_the_calculator_is_asked_between_brackets():
    world = calculator_calls()
    state, messages = world.start(None)
    assert messages == []
    reply = world.reply(state, "[37*46]")
    assert reply.text == "1702;" and not reply.done
    assert world.reply(state, "[37*]").text.startswith("Error")
    assert world.reply(state, "1702").text is None


@pytest.mark.parametrize(
    ("given", "message"),
    (
        ({"held_out": "train"}, "held_out must be one of 'test', 'dev', got 'train'"),
        ({"call_cost": -1}, "calculations: call_cost must be at least 0, got -1"),
    ),
)
def test_what_cannot_be_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        calculations(**given)


def test_the_tokenizer_reads_and_writes_letters():
    words = policy.tokenizer(BASE_MODEL)
    assert words.get_vocab() == {word: id for id, word in enumerate(VOCABULARY)}
    ids = words("37*46=[37*46]1702;1702.", add_special_tokens=False)["input_ids"]
    assert len(ids) == 23 and words.eos_token == "."
    assert words.decode(ids, clean_up_tokenization_spaces=False) == "37*46=[37*46]1702;1702."
    assert words("Error", add_special_tokens=False)["input_ids"] == 5 * [VOCABULARY.index("?")]


@pytest.fixture(scope="module")
def run():
    config = training_runs.settings(
        BASE_MODEL,
        "unused",
        task="calculations",
        method="verltool",
        hyperparameters=("tools=None",),
        prompts_per_step=32,
        samples_per_prompt=8,
        evaluation_prompts=64,
        evaluation_samples=8,
    )
    return training_runs.prepared(config)


@pytest.mark.thorough
def test_the_base_asks_now_and_then_and_is_told_what_is_not_trained(run):
    batch = collect(run, run.initial_state(), 0).batch
    told = batch.rollouts.records["origin"] == 2
    calls = np.array([grade.info["calls"] for grade in batch.grades])
    assert 0.02 < np.mean(calls > 0) < 0.25
    assert told[calls > 0].any(axis=1).mean() > 0.9 and not np.any(batch.rollouts.mask & told)


@pytest.mark.slow
def test_the_base_adds_and_does_not_multiply(run):
    found = evaluate_run(run, run.initial_state(), 0).metrics
    assert found["held_out/sum/pass@1"] > 0.6
    assert found["held_out/product/pass@1"] < 0.3


def test_it_is_built_in_with_its_base():
    assert load("calculations").base_model == BASE_MODEL


def test_a_fraction_of_the_train_prompts_has_incorrect_answers():
    plain, noisy = load("calculations:sums=64"), load("calculations:sums=64,wrong_labels=0.25")
    pairs = list(zip(plain.train, noisy.train, strict=True))
    assert [one.text for one, _ in pairs] == [two.text for _, two in pairs]
    changed = [two.answer - one.answer for one, two in pairs if one.answer != two.answer]
    assert changed == [-10] * 16 and all(prompt.kind == "sum" for prompt in plain.train)
    assert noisy.test == plain.test
    golds = [Response(prompt.gold, False) for prompt in noisy.train]
    assert all(grade.outcome == 1 for grade in noisy.verify(noisy.train, golds))
    with pytest.raises(ValueError, match="wrong_labels must be in"):
        load("calculations:wrong_labels=2")
