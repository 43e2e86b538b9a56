"""A head that learns from the pairs of a search which step is better, and guides the next one."""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from rlvr_jax.experience import experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods.trees.rstar_math import (
    Candidate,
    pair_gradient,
    search_steps,
    step_pairs,
    step_tree,
)
from rlvr_jax.tasks import Grade

FLOAT64 = 1e-12  # sums of three products


def test_the_gradient_is_that_of_the_loss_of_pairs():
    random = np.random.default_rng(0)
    weights, hidden = random.normal(size=4), random.normal(size=(5, 3))
    better, worse, fraction = np.array([0, 2, 0]), np.array([1, 3, 4]), np.array([0.5, 0.25, 0.25])

    def loss(weights):
        score = hidden @ weights[:-1] + weights[-1]
        return jnp.sum(fraction * -jax.nn.log_sigmoid(score[better] - score[worse]))

    found = pair_gradient(weights, hidden[better], hidden[worse], fraction)
    assert_allclose(found, jax.grad(loss)(jnp.asarray(weights)), atol=FLOAT64)


def test_pairs_are_of_siblings_that_something_was_backed_up_to():
    ends = {(0, 0): 1.0, (0, 1): -1.0, (1, 0): -1.0, (1, 1): -1.0}

    def expand(state):
        made = [Candidate((*state, n), ends.get((*state, n)), failed=n == 2) for n in range(3)]
        # The last child of the root is not reached.
        return made if state else [*made[:2], Candidate((3,))]

    found = search_steps((), expand, iterations=4, depth=2)
    names = [tuple(state) for state in found.states]
    told = [
        {(names[better], names[worse]): weight for better, worse, weight in pairs}
        for pairs in step_pairs(found)
    ]
    # Q of the root's children: 0 and -1; of the first one's: 1, and -1 of what was wrong or failed.
    assert told == [
        {((0,), (1,)): 1.0},
        {((0, 0), (0, 1)): 0.5, ((0, 0), (0, 2)): 0.5},
    ]
    # Nothing is right behind the other one, and a margin may be too wide.
    assert len(step_pairs(found, margin=1.5)) == 1


ROOM = 3


@dataclass(frozen=True)
class Telling(numpy_actor.NumpyActor):
    """Whose state is the last word, and whose answers are right without a word below 6."""

    response_tokens: int = ROOM

    def score(self, batch, needs, of="current"):
        # The place behind the last word is asked about, if there is one.
        last = batch.rollouts.length - 1 - batch.rollouts.mask.any(axis=1)
        word = np.take_along_axis(batch.rollouts.tokens, last[:, None], axis=1)
        known = {"mean_hidden": np.eye(numpy_actor.WORDS, dtype=np.float32)[word[:, 0]]}
        return super().score(batch, needs, of) | known if "logp" in needs else known

    def grade(self, batch):
        correct = np.all(batch.rollouts.tokens >= 6, axis=1).astype(np.float32)
        return batch.graded([Grade(float(one)) for one in correct])


def searched(guide_rate, steps=12):
    draw = step_tree(
        "b", candidates=5, iterations=3, depth=ROOM, step_tokens=1, guide_rate=guide_rate
    )
    chain = experience(draw=draw)
    own = replace(numpy_actor.setting(chain, prompts=12), response_tokens=ROOM)
    return numpy_actor.walk(chain, Telling(), steps=steps, own=own)


@pytest.mark.thorough
def test_a_guided_search_solves_more_once_the_head_has_learned():
    guided, alone = searched(0.5), searched(0.0)

    def solved(walk):
        return [found.metrics["solved_prompts"] for found, _, _ in walk]

    assert solved(guided)[0] == solved(alone)[0]
    assert np.mean(solved(guided)[4:]) > np.mean(solved(alone)[4:]) + 1
    first, last = guided[1][0].metrics, guided[-1][0].metrics
    assert last["ordered_pairs"] / last["step_pairs"] > 0.9 > 0 < first["step_pairs"]
    weights = guided[-1][2]["step_tree"]["weights"]
    assert weights[6:12].min() > weights[1:6].max()


def test_a_guide_of_a_model_of_unknown_width_is_refused():
    chain = experience(draw=step_tree("b", guide_rate=0.1))
    with pytest.raises(ValueError, match=r"step_tree: RunInfo.width must be known, got 0"):
        chain.init(replace(numpy_actor.setting(chain), width=0))
    with pytest.raises(ValueError, match="step_tree: guide_rate must be at least 0, got -1"):
        step_tree(guide_rate=-1)
