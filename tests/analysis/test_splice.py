"""Responses behind another prompt, as a policy scores them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from rlvr_jax.analysis.texts.se_bench import splice
from rlvr_jax.policy import Model, named_config, score
from rlvr_jax.types import Rollouts

EXACT = 1e-11  # float64 on both sides, some hundred roundings on numbers of order one
DOCUMENT = np.array([[5, 6, 7, 8], [5, 6, 9, 8]], np.int32)


def sampled():
    """Two rows with the log-probs of the prompt that holds the document, and who scores them."""
    model = Model(named_config("tiny", 11, num_layers=1, compute_dtype="float64"))
    random = np.random.default_rng(0)
    shapes = jax.eval_shape(model.init, jax.random.key(0))
    params = jax.tree.map(lambda leaf: jnp.asarray(random.normal(size=leaf.shape)), shapes)
    rollouts = Rollouts.of_responses(
        np.array([[1, 2, 0], [3, 0, 0]], np.int32),
        np.array([[1, 1, 1], [1, 1, 0]], bool),
        np.array([1.0, 0.0]),
        np.zeros(2, np.int32),
        length=np.array([3, 2], np.int32),
        prompt_tokens=DOCUMENT,
        prompt_length=np.array([4, 4], np.int32),
    )

    scored = jax.jit(lambda rows: score(model, params, rows).logp)

    def logp(rows):
        return np.asarray(scored(rows))

    return rollouts.replace(behaviour_logp=logp(rollouts)), logp


@pytest.mark.thorough
def test_log_probs_behind_the_splice_are_of_the_training_prompt():
    rollouts, logp = sampled()
    spliced = splice(rollouts, DOCUMENT[:, 2:], [2, 2])
    gap = np.abs(logp(spliced) - spliced.behaviour_logp)
    assert gap[np.asarray(rollouts.mask)].min() > 0.01  # the document matters
    first = spliced.replace(old_logp=logp(spliced))
    assert (np.exp(logp(first) - first.old_logp) == 1).all()


def test_a_splice_behind_the_same_prompt_changes_no_log_prob():
    rollouts, logp = sampled()
    padded = np.pad(DOCUMENT, ((0, 0), (0, 2)))
    again = splice(rollouts, padded, [4, 4])
    assert_allclose(logp(again), rollouts.behaviour_logp, atol=EXACT)
