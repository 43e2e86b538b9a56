"""RetroAgent: lessons of earlier episodes in half of each group, and progress that is reported."""

from dataclasses import replace

import jax
import numpy as np
import pytest
import training_runs
from numpy.testing import assert_allclose
from turn_runs import assert_turns_were_learned_from

from rlvr_jax.experience import experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.rewards.parts import Moment
from rlvr_jax.methods import recipe
from rlvr_jax.methods.agents.retroagent import (
    EPISODE,
    REFLECTION,
    beyond_best,
    cosines,
    lesson_scores,
    retrospect,
)
from rlvr_jax.tasks.sums.noted_calculations import read_note
from rlvr_jax.verifiers.texts.reflections import Reflection, json_reflection


def test_scores_of_lessons_by_hand():
    assert_allclose(cosines(np.array([[3.0, 4.0]]), np.array([[1.0, 0], [0, 0]])), [[0.6, 0]])
    # Σn = 4 and n = 1, 3: bonuses √(ln 4) = 1.177410 and √(ln 4 / 3) = 0.679778.
    found = lesson_scores(np.array([0.5, 1.0]), np.array([0.5, 0.0]), np.array([1, 3]), 0.7, 1.0)
    assert_allclose(found, [0.35 + 0.3 * 1.677410, 0.7 + 0.3 * 0.679778], atol=1e-6)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            'So: {"subtasks": [{"name": "a", "done": true}, {"name": "b", "done": false}],'
            ' "success": false, "lesson": " look twice "}',
            Reflection(1, 2, False, "look twice"),
        ),
        ('{"subtasks": [], "success": true}', None),
        ('{"subtasks": [{"name": "a", "done": "yes"}], "success": true}', None),
        ("{no json}", None),
        ("nothing", None),
    ],
)
def test_reflections_in_json(text, wanted):
    assert json_reflection(text) == wanted


def test_reflections_in_letters():
    assert read_note("12;0;*=+?") == Reflection(1, 2, False, "*=+?")
    assert read_note("22;1;") == Reflection(2, 2, True, "")
    for text in ("32;0;*=", "20;1;*=", "12;2;*=", "12;1;*", "12", ""):
        assert read_note(text) is None


def reader(text):
    """Every text with two words is a reflection that predicts a success; its lesson is a word."""
    words = text.split()
    return Reflection(1, 2, True, words[1]) if len(words) > 1 else None


def walked(steps=4, **options):
    chain = experience(stages=[retrospect(**{"threshold": -1.0, **options})])
    task = replace(numpy_actor.numbered_task(), read_reflection=reader)
    own = numpy_actor.setting(chain, task)
    return numpy_actor.walk(chain, steps=steps, own=own)


def test_half_of_each_group_sees_a_lesson_and_every_row_has_a_reflection():
    shown = 0
    for step, (found, _, state) in enumerate(walked()):
        batch, cells = found.batch, found.batch.rollouts.records["cell"]
        assert_allclose(cells[:16], EPISODE)
        assert_allclose(cells[16:], REFLECTION)
        assert [len(rows) for rows in batch.groups] == [4] * 8
        views = [request.view.label.partition("(")[0] for request in batch.requests]
        for rows in batch.groups[:4]:
            expected = ["plain", "plain"] + ["plain" if step == 0 else "with_note"] * 2
            assert [views[row] for row in rows] == expected
        assert {*views[16:]} == {"with_request"}
        # Reflections have the outcomes and the reports of their rows.
        assert_allclose(batch.rollouts.outcome[16:], batch.rollouts.outcome[:16])
        claimed = batch.rollouts.records["claimed"]
        assert_allclose(claimed[16:], claimed[:16])
        assert set(claimed.tolist()) <= {0.0, 0.5}
        shown += found.metrics["lessons_shown"]
        memory = state["retrospect"]
        assert found.metrics["lessons"] == np.sum(memory.uses > 0) > 0
    assert shown == 4 * 3


def test_only_lessons_of_foreseen_outcomes_are_stored_and_utilities_follow_outcomes():
    (first, _, state), (second, _, after), *_ = walked(beta=0.25, capacity=64)
    batch = first.batch
    texts = [response.text for response in batch.responses[16:]]
    won = batch.rollouts.outcome[:16] > 0.5
    stored = sum(bool(reader(text)) and own for text, own in zip(texts, won, strict=True))
    assert first.metrics["new_lessons"] == stored
    before, now = state["retrospect"], after["retrospect"]
    used = np.flatnonzero((before.uses > 0) & (now.uses > before.uses))
    assert len(used) and np.sum(now.uses[used] - before.uses[used]) == 8
    lessons = [r.view.label for r in second.batch.requests[:16]]
    rows = [n for n, label in enumerate(lessons) if label != "plain"]
    (place,) = used[:1]
    if len(used) == 1:
        utility = 0.5
        for outcome in second.batch.rollouts.outcome[rows].tolist():
            utility = 0.75 * utility + 0.25 * outcome
        assert now.utility[place] == pytest.approx(utility, abs=1e-6)


def test_lessons_below_the_threshold_are_not_shown():
    for found, _, _ in walked(threshold=1.1):
        assert found.metrics["lessons_shown"] == 0


def test_progress_is_beyond_the_best_and_the_only_reward_of_a_reflection():
    rollouts = numpy_actor.walk(experience(), steps=1)[0][0].batch.rollouts
    rows = rollouts.group < 1
    rollouts = jax.tree.map(lambda x: x[rows], rollouts)
    claimed, cell = np.array([0.75, 0.25, 1, 0]), np.array([0, 0, 0, 1], np.int32)
    outcome = np.array([0, 0, 1, 1], np.float32)
    rollouts = rollouts.replace(outcome=outcome, claimed=claimed.astype(np.float32), cell=cell)
    state = np.full(12, 0.5, np.float32)
    moment = Moment(0, None, np.full(4, 3))
    reward, after, _ = beyond_best(2.0).apply(rollouts, state, moment)
    # Φ = 0.5: I = 0.25, 0, 0.5 (correct: φ = 1), 0.5.
    assert_allclose(reward, [0.5, 0, 2, 1])
    assert_allclose(after, [0.5] * 12)


def test_the_recipe_has_a_memory_and_the_environment():
    chain = recipe("retroagent", tools=None, capacity=8).experience
    assert list(chain.parts) == ["shuffled_epochs", "turns", "retrospect", "shape"]
    with pytest.raises(ValueError, match="retroagent: capacity must be at least 1, got 0"):
        recipe("retroagent", capacity=0)


@pytest.mark.slow
def test_retroagent_learns_from_episodes_and_pays_what_they_claim(tmp_path):
    own = {"steps": 3, "task": "noted_calculations", "prompts_per_step": 16}
    steps = training_runs.on_brackets("retroagent", tmp_path / "run", **own)
    assert_turns_were_learned_from(steps)
    assert max(training_runs.values(steps, "experience/reward/progress")) > 0
