"""Curricula of methods: which prompts come when, in which form, and how they are labelled."""

import dataclasses
import itertools

import jax
import numpy as np
import pytest
import training_runs
from walks import numbers, walked

from rlvr_jax.experience import Stage, experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.laws.numbered_task import numbered_task
from rlvr_jax.methods import recipe
from rlvr_jax.methods.agents.skill0 import most_skills, next_active
from rlvr_jax.methods.curricula.cog_drift import Climb, climbed, easiest
from rlvr_jax.methods.curricula.dr_sci import exchanged
from rlvr_jax.methods.curricula.multi_domain import level_stage, one_level_at_a_time
from rlvr_jax.methods.guidance.adcl_egsr import failure_sources
from rlvr_jax.methods.guidance.reverse_curriculum import given_steps
from rlvr_jax.runs import TrainConfig
from rlvr_jax.tasks.base import Prompt, Response
from rlvr_jax.tasks.hinted_brackets import BASE_MODEL
from rlvr_jax.tasks.reformulations import box_at_the_end, reformulated, shuffled_choice
from rlvr_jax.tasks.rewards import blanks_reward
from rlvr_jax.tasks.sums.arithmetic_forms import arithmetic_forms
from rlvr_jax.tasks.synthesis.concepts import budgets, failed
from rlvr_jax.types import replace

# ADCL and EGSR


def test_right_guided_rows_take_the_first_places_of_failed_groups():
    outcome = np.array([[0, 0, 0, 0], [0, 1, 0, 0.0]])
    source = failure_sources(outcome, np.array([[0, 1, 1, 1], [1, 1, 1, 1.0]]), 2)
    assert source.tolist() == [[1, 2, -1, -1], [-1, -1, -1, -1]]


def test_pieces_are_trained_in_order_and_rated_just_before():
    found = walked("adcl_egsr", 8, pieces=3, rating_samples=8)
    orders = [state["pieces_by_difficulty"].order for _, _, state in found]
    rated = [told["rated_prompts"] for _, told, _ in found]
    # 12 prompts in 3 pieces of 4, which is a step each.
    assert rated == [12] + [4] * 7
    difficulty = found[0][2]["pieces_by_difficulty"].difficulty[orders[0]]
    assert (np.diff(difficulty) >= 0).all() and difficulty[0] < difficulty[-1]
    for step, (collected, told, _) in enumerate(found[1:]):
        piece = step % 3
        assert told["piece"] == piece
        assert sorted(numbers(collected)) == sorted(orders[0][4 * piece : 4 * piece + 4])
        section = orders[step][4 * piece : 4 * piece + 4]
        assert numbers(collected) == section.tolist()
        assert (np.diff(found[step][2]["pieces_by_difficulty"].difficulty[section]) >= 0).all()


def test_failed_rows_give_way_to_what_was_right_with_help():
    replaced = 0
    for collected, _, _ in walked("adcl_egsr", 6, numpy_actor.NumpyActor(chance=-0.1)):
        rollouts = collected.batch.rollouts
        assert [len(rows) for rows in collected.batch.groups] == [4] * 4
        for rows in collected.batch.groups:
            foreign = rollouts.off_policy[rows]
            assert foreign.sum() <= 2 and (rollouts.outcome[rows][foreign] == 1).all()
            assert not foreign.any() or not rollouts.outcome[rows][~foreign].any()
        there = rollouts.off_policy
        if there.any():
            assert (rollouts.shown_length[there] > 0).all()
            assert (rollouts.shown_tokens[there] != rollouts.prompt_tokens[there]).any()
        replaced += int(there.sum())
    assert replaced > 0


@pytest.mark.slow
def test_training_on_pieces_with_help_for_failures(tmp_path):
    given = ("pieces=2", "rating_samples=1", "guided_samples=4")
    steps = training_runs.on_brackets("adcl_egsr", tmp_path, steps=3, hyperparameters=given)
    assert max(training_runs.values(steps, "experience/replaced_rows")) > 0
    assert training_runs.values(steps, "experience/rated_prompts")[0] == 64
    assert max(training_runs.values(steps, "gradient_norm")) > 0


# Cog-DRIFT

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
    assert found.level.tolist() == [level] and found.visits.tolist() == [len(rewards)]


def test_what_is_at_a_bound_is_not_beyond_it_whatever_rounding_does():
    available = np.ones((1, 3), bool)
    assert climbed(easiest(available, 1), available, [0], [0.6], 0.6).level.tolist() == [0]
    thrice = np.array([0.9, 0.9, 0.9], np.float32).cumsum(dtype=np.float32)[-1:] / 3
    for accuracy in (np.array([0.6], np.float32), thrice):
        bound = round(float(accuracy[0]), 3)
        after, _ = exchanged(
            np.array([True, False]),
            np.array([False, True]),
            np.array([float(accuracy[0]), 0.0]),
            np.zeros(2),
            bound,
        )
        assert after.tolist() == [True, False]
    assert next_active({"a": -1e-17}, 3) == ["general", "a"]


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
        for ask in collected.batch.asks if levels is not None else []:
            easier = "variants" not in ask.prompt.meta and ask.number % 2 == 0
            assert easier == (levels[ask.number] == 0)
            assert not easier or ask.prompt.answer in "ABC"
        before = state["climb_formats"].level
        climbed_once |= told["formats_climbed"] > 0
    assert climbed_once and before.max() == 1


@pytest.mark.slow
def test_training_on_questions_in_easier_forms(tmp_path, monkeypatch):
    options = ["A", "B", "C", "D", "What", "is", "?"]
    monkeypatch.setattr(training_runs, "WORDS", [*training_runs.WORDS, *options])
    model = training_runs.write_policy(tmp_path / "model", max_positions=64)
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


# Dr.SCI


def test_mastered_prompts_give_way_to_the_easiest_that_wait():
    active = np.array([True, True, True, False, False, False])
    waiting = ~active
    accuracy = np.array([1.0, 0.5, 0.95, 0, 0, 0])
    difficulty = np.array([0.9, 0.8, 0.7, 0.1, 0.6, 0.6])
    after, queue = exchanged(active, waiting, accuracy, difficulty, 0.9)
    assert after.tolist() == [False, True, False, False, True, True]
    assert queue.tolist() == [False] * 3 + [True, False, False]
    fewer = np.array([False] * 3 + [True, False, False])
    after, queue = exchanged(active, fewer, accuracy, difficulty, 0.9)
    assert after.tolist() == [False, True, True, True, False, False] and not queue.any()


def test_the_set_begins_between_the_bounds_and_trades_what_is_mastered():
    given = {"mastered": 0.6, "pending": 0.3, "discard": 0.9, "rating_samples": 6}
    found = walked("dr_sci", 10, **given)
    first = found[0][2]["mastery_pool"]
    assert (first.difficulty[first.waiting] <= 0.3).all() and first.active.any()
    assert (first.difficulty[first.active] < 0.9).all()
    for (_, _, before), (collected, _, _) in itertools.pairwise(found):
        assert set(numbers(collected)) <= set(np.flatnonzero(before["mastery_pool"].active))
    assert sum(told["mastered_prompts"] for _, told, _ in found) > 0


@pytest.mark.slow
def test_training_on_a_set_that_is_mastered(tmp_path):
    given = ("mastered=0.2", "rating_samples=2", "pending=0.4")
    steps = training_runs.on_brackets(
        "dr_sci", tmp_path, "hinted_brackets:train=16", steps=4, hyperparameters=given
    )
    assert sum(training_runs.values(steps, "experience/mastered_prompts")) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0


# Level by level


def test_levels_follow_one_another_with_a_refresh_between_them():
    levels = range(3, 9)
    told = [level_stage(step, 175, levels) for step in (0, 174, 175, 176, 1049, 1050)]
    assert told == [(3, False), (3, False), (4, True), (4, False), (8, False), (8, False)]


@pytest.mark.parametrize(
    ("right", "total", "wanted"), [(3, 5, [0, 0.6, 0.2]), (5, 5, [1, 1, 1]), (0, 5, [0, 0, -1])]
)
def test_rewards_of_blanks(right, total, wanted):
    forms = ("binary", "share", "signed_share")
    assert [blanks_reward(right, total, form) for form in forms] == pytest.approx(wanted)
    assert blanks_reward(right, total, "signed_binary") == 2 * wanted[0] - 1


def test_more_blanks_than_there_are_is_refused():
    with pytest.raises(ValueError, match=r"right must be in 0 \.\. total 5 > 0, got 6"):
        blanks_reward(6, 5, "share")


def test_a_step_asks_prompts_of_its_level_alone():
    for step, (collected, told, _) in enumerate(walked("multi_domain", 8, per_level=2)):
        level = min(step // 2, 2)
        assert {prompt.meta["level"] for prompt in collected.batch.prompts} == {level}
        assert told["level"] == level


def test_the_level_of_a_step_is_told_where_a_stage_makes_up_prompts():
    def made_up(batch, actor, state, turn):
        asks = [replace(ask, prompt=Prompt("made up")) for ask in batch.asks]
        return dataclasses.replace(batch, asks=asks), state, {}

    chain = experience(one_level_at_a_time(2), stages=[Stage(made_up)])
    assert [told["level"] for _, told, _ in numpy_actor.walk(chain)] == [0, 0, 1, 1]


def test_between_levels_the_policy_becomes_its_reference(tmp_path):
    run = training_runs.prepared(
        TrainConfig(
            task="hinted_brackets:train=64",
            method="multi_domain",
            hyperparameters=("per_level=1",),
            model=BASE_MODEL,
            steps=3,
            prompts_per_step=4,
            samples_per_prompt=4,
        )
    )
    state = run.initial_state()
    moved = jax.tree.map(lambda x: x + 1, state.params)
    later = replace(state, params=moved)
    kept, fresh = run.prepared(later, 0), run.prepared(later, 1)
    assert kept is later
    same = jax.tree.map(lambda x, y: bool((x == y).all()), fresh.reference, moved)
    assert all(jax.tree.leaves(same))
    unlike = jax.tree.map(lambda x, y: bool((x == y).all()), kept.reference, moved)
    assert not any(jax.tree.leaves(unlike))


@pytest.mark.slow
def test_training_level_by_level_resumes_with_its_reference(tmp_path):
    given = {"hyperparameters": ("per_level=1", "kl_coefficient=0.1")}
    task = "hinted_brackets:train=64"
    whole = training_runs.on_brackets("multi_domain", tmp_path / "a", task, steps=3, **given)
    training_runs.on_brackets(
        "multi_domain", tmp_path / "b", task, steps=2, checkpoint_every=1, **given
    )
    parts = training_runs.on_brackets(
        "multi_domain", tmp_path / "b", task, steps=3, checkpoint_every=1, resume=True, **given
    )
    levels = training_runs.values(whole, "experience/level")
    assert levels == sorted(levels) and len(set(levels)) == 3
    # The reference is the policy of the step: no divergence in its only update.
    divergence = training_runs.values(whole, "kl_penalty/k3")
    assert max(divergence) < 1e-8
    for name in ("loss", "kl_penalty/k3", "experience/level"):
        assert training_runs.values(parts, name) == training_runs.values(whole, name)


# R³ and RECAP


def test_all_but_the_last_steps_are_given_and_at_last_none():
    steps = np.array([3, 1])
    assert [given_steps(steps, stage).tolist() for stage in (1, 2, 3, 4)] == [
        [2, 0],
        [1, 0],
        [0, 0],
        [0, 0],
    ]


@pytest.mark.parametrize("per_stage", [0, 2])
def test_responses_begin_near_the_end_of_a_solution(per_stage):
    shares = []
    for collected, told, _ in walked("reverse_curriculum", 8, per_stage=per_stage):
        rollouts = collected.batch.rollouts
        given = rollouts.origin == 3 if rollouts.origin is not None else rollouts.mask & False
        assert not (rollouts.mask & given).any()
        wrong = (rollouts.outcome == 0) & ~rollouts.truncated
        assert set(rollouts.reward.tolist()) <= {0.0, np.float32(0.2), 1.0}
        assert (rollouts.reward[wrong] == np.float32(0.2)).all()
        shares.append(told["given_fraction"])
    if per_stage:
        assert shares == [0.75, 0.75, 0.5, 0.5, 0.25, 0.25, 0.0, 0.0]
    else:
        assert len(set(shares)) > 2


@pytest.mark.slow  # ten seconds
def test_training_from_near_the_end(tmp_path):
    steps = training_runs.on_brackets("reverse_curriculum", tmp_path, steps=3)
    assert max(training_runs.values(steps, "experience/given_fraction")) > 0
    assert max(training_runs.values(steps, "given_tokens")) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0


@pytest.mark.slow
def test_training_weighs_kinds_by_how_they_move(tmp_path):
    given = ("window=1", "temperature=0.1")
    steps = training_runs.on_brackets("recap", tmp_path, steps=4, hyperparameters=given)
    most = training_runs.values(steps, "objective_weight/max")
    least = training_runs.values(steps, "objective_weight/min")
    assert most[0] == least[0] == 1 and max(most) > 1 > min(least)
    assert most[-1] + least[-1] == pytest.approx(2, rel=1e-5)  # two kinds, whose mean is 1
    assert max(training_runs.values(steps, "gradient_norm")) > 0


# OLR


def test_a_group_is_graded_by_its_settled_majority():
    changed = 0
    given = {"start": 0, "slope": -1.0}
    for collected, _, _ in walked("olr", 8, numpy_actor.NumpyActor(chance=0.2), **given):
        batch = collected.batch
        for rows in batch.groups:
            answers = [batch.grades[row].answer for row in rows]
            told, drawn = batch.rollouts.outcome[rows], collected.seen[0].rollouts.outcome[rows]
            if (told != drawn).any():
                most = max(set(answers), key=answers.count)
                assert told.tolist() == [float(answer == most) for answer in answers]
                assert (batch.rollouts.reward[rows] == told).all()
                changed += 1
    assert changed > 0


@pytest.mark.slow
def test_training_on_labels_that_answers_repair(tmp_path):
    given = ("start=0", "slope=-1")
    steps = training_runs.on_brackets(
        "olr", tmp_path, "hinted_brackets:train=8", steps=4, hyperparameters=given
    )
    assert max(training_runs.values(steps, "experience/relabelled_groups")) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0


# SwS


def test_failed_prompts_never_were_solved_often_and_fell():
    accuracy = np.array([[0.4, 0.2], [0.2, 0.4], [0.6, 0.1], [0, 0]])
    assert failed(accuracy, 0.5).tolist() == [True, False, False, False]
    assert failed(accuracy, 0.5, included=True).tolist() == [True, False, False, True]
    assert failed(accuracy[:, :1], 0.5).tolist() == [True, True, False, True]
    even = budgets(np.zeros(4, bool), np.array([0, 0, 1, 1]), 2, 10)
    assert even.tolist() == [5, 5]
    found = budgets(np.array([True, True, True, False]), np.array([0, 0, 1, 1]), 2, 9)
    assert found.tolist() == [6, 3]


def test_after_its_epochs_a_step_has_more_of_what_failed():
    chain = recipe("sws", epochs=2, threshold=0.9, share=0.5, included=True).experience
    found = numpy_actor.walk(chain, numpy_actor.NumpyActor(chance=0.3), 10)
    # 12 prompts, four a step: two epochs are six steps.
    for epoch in (0, 3):
        asked = [n for collected, _, _ in found[epoch : epoch + 3] for n in numbers(collected)]
        assert sorted(asked) == list(range(12))
    events = [chain.events(found[0][2], step) for step in range(10)]
    assert [bool(event) for event in events] == [step == 6 for step in range(10)]
    fail = found[5][2]["shift_to_weaknesses"].fail
    assert fail.any() and not found[4][2]["shift_to_weaknesses"].fail.any()
    for collected, told, _ in found[6:]:
        assert told["weak_asks"] == 0.5
        assert fail[[n for n in numbers(collected)]].sum() >= 2


def test_where_nothing_has_failed_synthetic_prompts_of_all_kinds_are_asked_alike():
    chain = recipe("sws", epochs=1, share=1.0).experience
    task = numbered_task()
    made = [replace(p, meta={**p.meta, "synthetic": p.kind == "odd"}) for p in task.train]
    own = numpy_actor.setting(chain, task=replace(task, train=made))
    found = numpy_actor.walk(chain, numpy_actor.NumpyActor(chance=2.0), 5, own=own)
    assert [told["weak_asks"] for _, told, _ in found] == [0, 0, 1, 1, 1]
    assert all(p.kind == "odd" for c, _, _ in found[2:] for p in c.batch.prompts)


@pytest.mark.slow
def test_training_on_weaknesses(tmp_path):
    steps = training_runs.on_brackets(
        "sws",
        tmp_path,
        "hinted_brackets:train=16",
        steps=4,
        hyperparameters=("epochs=1", "included=true", "threshold=0.9"),
    )
    weak = training_runs.values(steps, "experience/weak_asks")
    assert weak == [0, 0, 0.5, 0.5]
    assert max(training_runs.values(steps, "gradient_norm")) > 0


# SKILL0


def test_phases_allow_fewer_and_fewer_skills():
    steps = (1, 60, 61, 120, 121, 180)
    assert [most_skills(step, 180, 10, (6, 3, 0)) for step in steps] == [6, 6, 3, 3, 0, 0]
    gain = {"a": 0.1, "b": 0.0, "c": -0.05, "d": 0.3}
    assert next_active(gain, 3) == ["general", "d", "a"]
    assert next_active(gain, 6) == ["general", "d", "a", "b"]
    assert next_active(gain, 1) == ["general"] and next_active(gain, 0) == []


def test_skills_are_shown_rated_and_taken_away():
    given = {"skills": "general=a|even=longer text|odd=b", "sets": (3, 1, 0), "every": 1}
    found = walked("skill0", 10, **given, rated=6)
    shown = []
    for collected, told, _ in found:
        labels = {ask.view.label for ask in collected.batch.asks}
        assert len(labels) == 1
        shown.append(told["active_skills"])
        assert ("plain" in labels) == (told["active_skills"] == 0)
        rated = {ask.view.label for batch in collected.seen for ask in batch.asks if ask.rating}
        assert len(rated) == (2 if told["active_skills"] else 0)
    # Ten steps of three phases: three each, the rest of the last.
    assert shown[0] == 3 and max(shown[3:6]) <= 1 and shown[6:] == [0] * 4


@pytest.mark.slow
def test_training_with_skills_that_are_withdrawn(tmp_path):
    given = ("skills=general=3 +|hard=(", "sets=2,0", "every=1", "rated=8", "rating_samples=1")
    steps = training_runs.on_brackets("skill0", tmp_path, steps=4, hyperparameters=given)
    shown = training_runs.values(steps, "experience/active_skills")
    assert shown[0] == 2 and shown[-1] == 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0


@pytest.mark.slow
def test_training_with_skills_in_turns_with_a_calculator(tmp_path):
    given = ("skills=general=;|product=[*]", "sets=2,0", "every=1", "rated=16", "rating_samples=2")
    steps = training_runs.on_brackets(
        "skill0",
        tmp_path,
        "calculations:response_tokens=20",
        steps=4,
        temperature=1.4,
        hyperparameters=(*given, "max_turns=2"),
    )
    shown, answers, turns, reward, outcome = (
        np.array(training_runs.values(steps, name))
        for name in (
            *(f"experience/{name}" for name in ("active_skills", "answers", "turns")),
            *("reward", "outcome"),
        )
    )
    assert shown[0] == 2 and shown[-1] == 0
    assert np.all(turns > answers) and max(training_runs.values(steps, "experience/calls")) > 0
    # Answers of the two ratings, with and without skills, and those that are learned from.
    np.testing.assert_array_equal(answers, np.where(shown > 0, 64 + 2 * 16 * 2, 64))
    # An invalid action costs a tenth.
    paid = 64 * (outcome - reward) / 0.1
    np.testing.assert_allclose(paid, np.round(paid), atol=1e-3)
    assert np.all(paid > -0.5) and paid.max() > 0.5
    assert max(training_runs.values(steps, "gradient_norm")) > 0
