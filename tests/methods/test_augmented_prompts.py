"""Groups that are sampled again with hints: which rows, and what hints give away."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

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


@pytest.mark.parametrize("form", [None, lambda prompt, hint: f"{hint};{prompt.text}"])
def test_hints_that_give_the_answer_away_are_counted(form):
    task = numbered_task()
    # Every second prompt has a hint that says its answer, and a solution that begins with it.
    told = [("no", "First I look, and then it is yes."), ("it is yes", "It is yes, as before.")]
    told += [("no", "First I look, and then it is yes."), ("it is yes", "Short: yes")]
    prompts = [
        dataclasses.replace(prompt, answer="yes", hints=[hint], solution=[solution])
        for prompt, (hint, solution) in zip(task.train, told * len(task.train), strict=False)
    ]
    given = dataclasses.replace(task, train=prompts, show_hint=form)
    for name, curve in (("nurl", "redrawn_as_it_was"), ("questa", "shown_as_it_is")):
        more = {"window": 1, "least_gain": 2.0} if name == "nurl" else {}
        chain = recipe(name, **more).experience
        own = numpy_actor.setting(chain, task=given, prompts=12)
        found = numpy_actor.walk(chain, numpy_actor.NumpyActor(chance=-0.4), 4, own=own)
        fractions = [{**collected.metrics, **metrics}.get(curve) for collected, metrics, _ in found]
        # QuestA's own form also leaves out a short hint.
        plain = 0.25 if form and name == "questa" else 0.5
        assert fractions[2:] == [plain, plain]
        assert name == "nurl" or all(told["hinted_fraction"] == 1 - plain for _, told, _ in found)
