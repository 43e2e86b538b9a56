"""The distance of two losses: by their slopes, without a change of the loss."""

import golden_vectors as golden
import jax
import numpy as np
import pytest

from rlvr_jax import Spec
from rlvr_jax.methods import recipe
from rlvr_jax.objectives import (
    fixed_length_mean,
    group_normalized,
    measured_against,
    objective,
    reinforce,
    token_mean,
)
from rlvr_jax.types import Recipe


def reinforced(aggregation):
    return objective(group_normalized(), surrogate=reinforce(), aggregation=aggregation)


def test_a_loss_has_no_distance_from_itself_and_its_gradient_stays():
    own = recipe("clip_cov").objective
    compared = golden.evaluate(Recipe(measured_against(own, own)), "a")
    plain = golden.evaluate(Recipe(own), "a")
    assert compared.metrics.pop("slope_distance") == 0
    assert compared.loss == plain.loss and compared.metrics == plain.metrics
    np.testing.assert_array_equal(compared.dlogits, plain.dlogits)


def test_losses_that_differ_by_a_factor_have_the_distance_of_the_factor():
    mask, length = golden.inputs("a")["mask"], 5
    factor = np.sum(mask) / (len(mask) * length)
    both = measured_against(reinforced(fixed_length_mean(length)), reinforced(token_mean()))
    distance = golden.evaluate(Recipe(both), "a").metrics["slope_distance"]
    np.testing.assert_allclose(distance, abs(factor - 1) / (factor + 1), rtol=1e-9)


@pytest.mark.thorough
def test_the_other_loss_decides_by_itself_if_the_batch_was_decided_once():
    own = recipe("nsr").objective
    both = measured_against(own, recipe("dapo").objective)
    batch, key = golden.rollouts("a"), jax.random.key(0)
    state = both.init(Spec(1, *batch.tokens.shape))
    decided, state, _ = both.decide_once(batch, state, key)
    known = decided.replace(old_logp=golden.stats("a").logp)
    stats = golden.stats("a")
    _, (_, whole) = both.loss(stats, batch.replace(old_logp=stats.logp), state, key)
    _, (_, split) = both.loss(stats, known, state, key)
    assert whole["slope_distance"] > 0.1
    np.testing.assert_allclose(split["slope_distance"], whole["slope_distance"], rtol=1e-9)


def test_a_loss_with_state_is_refused_as_the_other():
    with pytest.raises(ValueError, match=r"other must be an objective without state.*, got state"):
        measured_against(recipe("grpo").objective, recipe("safe").objective)
