"""Cog-DRIFT: unsolved problems are shown in easier forms first, each at its own level."""

import numpy as np
import pytest
import training_runs
from walks import walked

from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods.curricula.cog_drift import Climb, climbed, easiest
from rlvr_jax.tasks.base import Response
from rlvr_jax.tasks.derived.reformulations import box_at_the_end, reformulated, shuffled_choice
from rlvr_jax.tasks.sums.arithmetic_forms import arithmetic_forms

EVERY = np.ones((1, 4), bool)


def climb(rewards, available=EVERY, window=1, threshold=0.5):
    state = easiest(available, window)
    return climbed(state, available, [0] * len(rewards), rewards, threshold)


@pytest.mark.parametrize(
    ("rewards", "available", "window", "level"),
    [
        ([0.45, 0.51, 0.2, 0.9], [1, 1, 1, 1], 1, 2),
        ([0.5, 0.5], [1, 1, 1, 1], 1, 0),
        ([0.4, 0.7, 0.9], [1, 1, 1, 1], 2, 2),
        ([0.6], [1, 0, 1, 1], 1, 2),
        ([0.9], [1, 0, 0, 1], 1, 3),
        ([0.9] * 4, [1, 0, 0, 1], 1, 3),
        ([0.45] * 5, [1, 1, 1, 1], 1, 0),
    ],
)
def test_a_prompt_climbs_where_its_reward_is_above_the_threshold(rewards, available, window, level):
    found = climb(rewards, np.array([available], bool), window)
    assert found.level.tolist() == [level] and found.times_sampled.tolist() == [len(rewards)]


def test_the_window_begins_anew_after_a_climb():
    found = climb([0.45, 0.51, 0.2, 0.9])
    assert found.count.tolist() == [0] and not found.window.any()
    assert isinstance(found, Climb)


def test_the_letter_moves_with_its_option():
    letters = set()
    for seed in range(20):
        text, letter = shuffled_choice("Which?", ["7", "8", "9"], np.random.default_rng(seed))
        assert f"{letter} 7" in text.splitlines()
        letters.add(letter)
    assert letters == {"A", "B", "C"}
    with pytest.raises(ValueError, match="options must be 2 to 10 different texts, got"):
        shuffled_choice("Which?", ["7", "7"], np.random.default_rng(0))


def test_forms_of_a_question_have_the_answers_that_belong_to_them():
    task = arithmetic_forms()
    prompt, random = task.train[0], np.random.default_rng(0)
    choice, gap = (reformulated(prompt, name, random) for name in ("ten_choice", "fill_in"))
    assert len(choice.text.splitlines()) == 11 and choice.answer in "ABCDEFGHIJ"
    assert f"{choice.answer} {prompt.answer}" in choice.text.splitlines()
    assert gap.answer == prompt.answer and "__" in gap.text
    told = task.verify(
        [choice, choice, gap, prompt],
        [Response(t) for t in (f"It is {choice.answer}.", "42", "so 3", "\\boxed{1}")],
    )
    assert [grade.outcome for grade in told][:2] == [1, 0]
    assert [grade.info["format"] for grade in told] == [0, 0, 0, 1]
    with pytest.raises(ValueError, match="name must be one of the variants"):
        reformulated(prompt, "essay", random)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("\\boxed{7}", True),
        ("so \\boxed{7}.", True),
        ("\\boxed{7} and much more", False),
        ("\\boxed{7} \\boxed{8}", False),
        ("7", False),
        ("\\boxed{7", False),
    ],
)
def test_the_format_is_one_box_at_the_end(text, kept):
    assert box_at_the_end(text) == kept


def test_a_prompt_is_asked_in_the_form_that_it_has_reached():
    # The actor is right as often as for the question itself.
    actor = numpy_actor.NumpyActor(chance=0.9)
    given = {"formats": ["choice"], "threshold": 0.3}
    climbed_once = False
    before = None
    for collected, told, state in walked("cog_drift", 8, actor, **given):
        levels = before
        for request in collected.batch.requests if levels is not None else []:
            easier = "variants" not in request.prompt.meta and request.number % 2 == 0
            assert easier == (levels[request.number] == 0)
            assert not easier or request.prompt.answer in "ABC"
        before = state["climb_formats"].level
        climbed_once |= told["formats_climbed"] > 0
    assert climbed_once and before.max() == 1


@pytest.mark.slow
def test_training_on_questions_in_easier_forms(tmp_path, monkeypatch):
    task = arithmetic_forms("easy", max_factor=3, max_term=4)
    random = np.random.default_rng(0)
    forms = ("four_choice", "ten_choice", "fill_in")
    shown = [reformulated(prompt, form, random) for prompt in task.train for form in forms]
    words = {word for prompt in (*task.train, *shown) for word in prompt.text.split()}
    words = sorted(words - {*training_runs.WORDS})
    monkeypatch.setattr(training_runs, "WORDS", [*training_runs.WORDS, *words])
    model = training_runs.write_policy(tmp_path / "model", max_positions=128)
    config = training_runs.settings(
        model,
        tmp_path / "run",
        task="arithmetic_forms:easy,max_factor=3,max_term=4",
        method="cog_drift",
        hyperparameters=("threshold=0.1",),
        prompts_per_step=4,
        samples_per_prompt=8,
        steps=4,
    )
    training_runs.quietly(config)
    steps = training_runs.metrics(tmp_path / "run")
    assert sum(training_runs.values(steps, "experience/formats_climbed")) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0
