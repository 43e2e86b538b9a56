"""ARPO: a correct response that calls two tools has a larger reward."""

import dataclasses

import numpy as np

from rlvr_jax.experience import experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.laws.numbered_task import numbered_task
from rlvr_jax.methods import recipe
from rlvr_jax.methods.agents.arpo import reward_two_tools
from rlvr_jax.tasks import load

TEXTS = (
    "<look>x1</look><try>c1*x1</try>",
    "<look>x1</look><look>x2</look>",
    "<try>c1</try><look>x1",
    "",
)


class Scripted(numpy_actor.Words):
    """Reads rows as texts with calls, by their first tokens."""

    def batch_decode(self, rows, **options):
        return [TEXTS[row[0] % len(TEXTS)] if row else "" for row in rows]


class Calling(numpy_actor.NumpyActor):
    """Its responses are read as texts with calls."""

    def draw(self, requests, key, sampling=None, constants=None):
        sampled = super().draw(requests, key, sampling, constants)
        return dataclasses.replace(sampled, tokenizer=Scripted())


def test_only_a_correct_response_that_calls_two_tools_gets_the_bonus():
    world = load("equations:size=8,test_size=8").environment
    task = dataclasses.replace(numbered_task(), environment=world)
    chain = experience(stages=[reward_two_tools(0.25)])
    own = numpy_actor.setting(chain, task=task, prompts=8)
    found = 0.0
    for collected, _, _ in numpy_actor.walk(chain, Calling(), 4, own=own):
        batch, rollouts = collected.batch, collected.batch.rollouts
        both = np.array([response.text == TEXTS[0] for response in batch.responses])
        wanted = (rollouts.outcome == 1) & both
        before = np.array([grade.reward for grade in batch.grades])
        np.testing.assert_allclose(rollouts.reward, before + 0.25 * wanted, rtol=1e-6)  # float32
        assert collected.metrics["two_tools_fraction"] == wanted.mean()
        found += wanted.sum()
    assert found > 0


def test_the_bonus_is_part_of_the_method_unless_it_is_0():
    assert [stage for stage in recipe("arpo").experience.stages] == ["reward_two_tools"]
    assert not recipe("arpo", tool_bonus=0).experience.stages
