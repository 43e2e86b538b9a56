"""Entropy bonus: GRPO with the mean entropy of the policy added to the maximised objective."""

import golden_vectors as golden
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from adapters.common import only
from clipped_objective import made
from golden_vectors import assert_agrees

from rlvr_jax.methods.entropy.entropy_bonus import adaptive_entropy_bonus, scheduled
from rlvr_jax.objectives.regularizers.token_penalties import entropy_bonus, statistic_term


@pytest.mark.thorough
@pytest.mark.parametrize("part", [entropy_bonus(0.5), statistic_term(-0.5, "entropy")])
def test_a_schedule_scales_what_a_part_adds_update_by_update(part):
    batch, stats = golden.rollouts("b"), golden.stats("b")
    name = part.label.partition("(")[0]
    falling = only(scheduled(part, optax.linear_schedule(1.0, 0.0, 4))).objective
    whole = golden.step(only(part).objective, stats, batch)
    empty = batch.replace(mask=golden.array(batch.mask & False, bool))
    state, factors = None, []
    for own in (batch, batch, empty, batch, batch, batch, batch):
        done = golden.step(falling, stats, own, state)
        state = done.state
        if own is empty:
            continue
        factors.append(float(done.metrics[f"schedule/{name}"]))
        assert_agrees(done.loss, factors[-1] * whole.loss)
        assert_agrees(done.dstats.entropy, factors[-1] * np.asarray(whole.dstats.entropy))
    np.testing.assert_allclose(factors, [1, 0.75, 0.5, 0.25, 0, 0], atol=1e-7)


@pytest.mark.thorough
def test_adaptive_bonus_waits_one_update_and_keeps_its_state_without_tokens():
    controlled = made(regularizers=[adaptive_entropy_bonus(target=9.0, step=0.1, initial=0.3)])
    stats, batch = golden.stats("b", np.float32), golden.rollouts("b", False, np.float32)
    first = golden.step(controlled, stats, batch)
    second = golden.step(controlled, stats, batch, first.state)
    assert first.metrics["entropy_coefficient"] == 0
    np.testing.assert_allclose(second.metrics["entropy_coefficient"], 0.4, rtol=1e-12)
    assert not np.asarray(first.dstats.entropy).any()
    assert np.asarray(second.dstats.entropy).any()
    empty = batch.replace(mask=golden.array(batch.mask & False, bool))
    third = golden.step(controlled, stats, empty, second.state)
    assert third.state == second.state
    assert jax.tree.map(jnp.result_type, third.state) == jax.tree.map(jnp.result_type, first.state)
