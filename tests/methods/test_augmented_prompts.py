"""NuRL, QuestA, CFT: prompts with hints, and critiques that are imitated."""

import dataclasses

import critique_task
import jax.numpy as jnp
import numpy as np
import pytest
import training_runs

from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.laws.numbered_task import numbered_task
from rlvr_jax.experience.stages.rounds.redraw import redrawn_rows
from rlvr_jax.methods import recipe
from rlvr_jax.objectives import Spec, group_normalized, objective, ppo_clip, token_mean
from rlvr_jax.types import Rollouts, TokenStats

HALF = 0.866023904  # 1/2 over the deviation of 1 0 1 0 plus 1e-6, as the example prints it
PRINTED = 1e-9


def test_all_but_the_last_row_of_a_failed_group_are_hinted():
    again = np.array([True, False])
    found = redrawn_rows(again, np.array([4, 4]), 1)
    assert found.astype(int).tolist() == [[1, 1, 1, 0], [0, 0, 0, 0]]


def test_a_hinted_group_is_compared_with_its_plain_row():
    own = objective(group_normalized(), surrogate=ppo_clip(0.2, 0.2), aggregation=token_mean())
    batch = Rollouts.of_responses(
        np.ones((4, 1), int), np.ones((4, 1), bool), np.array([1.0, 0, 1, 0]), np.zeros(4)
    )
    logp = jnp.zeros((4, 1))
    import jax

    decided = own.signals(TokenStats(logp=logp), batch, own.init(Spec(1, 4, 1)), jax.random.key(0))
    np.testing.assert_allclose(decided.advantage[:, 0], [HALF, -HALF, HALF, -HALF], rtol=PRINTED)


def test_groups_are_drawn_anew_with_hints_after_the_first_stage():
    chain, again = recipe("nurl", first_stage=2).experience, 0
    actor = numpy_actor.NumpyActor(chance=-0.2)
    for step, (collected, told, _) in enumerate(numpy_actor.walk(chain, actor, steps=5)):
        batch = collected.batch
        labels = batch.by_group(np.array([a.view.label != "plain" for a in batch.asks]), False)
        wrong = (collected.seen[0].outcomes() == 0).all(axis=1)
        np.testing.assert_array_equal(labels[:, :3].all(axis=1), wrong & (step >= 2))
        assert not labels[:, 3].any()
        again += int(labels.sum())
        assert told["pool_prompts"] <= 12
    assert again > 0


def test_hints_that_give_the_answer_away_are_counted():
    task = numbered_task()
    # Every second prompt has a hint that says its answer, and a solution that begins with it.
    told = [("no", "First I look, and then it is yes."), ("it is yes", "It is yes, as before.")]
    told += [("no", "First I look, and then it is yes."), ("it is yes", "Short: yes")]
    prompts = [
        dataclasses.replace(prompt, answer="yes", hints=[hint], solution=[solution])
        for prompt, (hint, solution) in zip(task.train, told * len(task.train), strict=False)
    ]
    given = dataclasses.replace(task, train=prompts)
    for name, curve in (("nurl", "redrawn_as_it_was"), ("questa", "shown_as_it_is")):
        more = {"first_stage": 1} if name == "nurl" else {}
        chain = recipe(name, **more).experience
        own = numpy_actor.setting(chain, task=given, prompts=12)
        found = numpy_actor.walk(chain, numpy_actor.NumpyActor(chance=-0.4), 3, own=own)
        shares = [{**collected.metrics, **metrics}.get(curve) for collected, metrics, _ in found]
        assert shares[1:] == [0.5, 0.5]


@pytest.mark.slow
def test_training_with_hints_for_what_nobody_answers(tmp_path):
    given = ("first_stage=1",)
    steps = training_runs.on_brackets("nurl", tmp_path, steps=3, hyperparameters=given)
    shares = training_runs.values(steps, "experience/redrawn_fraction")
    assert shares[0] == 0 and max(shares[1:]) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0


@pytest.mark.slow
def test_training_on_questions_that_show_half_of_their_solution(tmp_path):
    steps = training_runs.on_brackets("questa", tmp_path)
    assert max(training_runs.values(steps, "gradient_norm")) > 0
    lines = (tmp_path / "outcomes.jsonl").read_text()
    assert "augmented(0.5)" in lines and "plain" not in lines


@pytest.mark.slow
def test_training_imitates_critiques(tmp_path, monkeypatch):
    monkeypatch.setattr(training_runs, "WORDS", [*training_runs.WORDS, *critique_task.WORDS])
    model = training_runs.write_policy(tmp_path / "model")
    config = training_runs.settings(
        model,
        tmp_path / "run",
        task="critique_task:critiques",
        method="critique_ft",
        samples_per_prompt=1,
        steps=4,
    )
    training_runs.quietly(config)
    steps = training_runs.metrics(tmp_path / "run")
    losses = training_runs.values(steps, "imitation_loss")
    assert losses[-1] < losses[0]
    assert min(training_runs.values(steps, "experience/imitated_solutions")) == 4
    assert min(training_runs.values(steps, "imitated_tokens")) > 0
