"""Soft trust regions against what they become in their limits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from golden_vectors import array

from rlvr_jax.methods.agents.aepo_agentic import ppo_cap
from rlvr_jax.methods.clipping.f_dpg import product_ratio
from rlvr_jax.methods.clipping.gmpo import geometric_mean_clip
from rlvr_jax.methods.clipping.sapo import sigmoid_gated
from rlvr_jax.objectives import Context, ppo_clip
from rlvr_jax.types import Signals, TokenStats, replace


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("surrogate", "advantage", "value", "slope"),
    [
        (ppo_cap(0.2, 0.25, 3.0), 2.0, -2.5, -2.5),
        (ppo_clip(0.2, 0.25), 2.0, -2.5, 0),
        (ppo_clip(0.2, 0.25, ratio=product_ratio), 2.0, -2.5, 0),
        (ppo_clip(0.2, 0.25), 0.0, 0, 0),
        (ppo_clip(0.2, 0.25), -2.0, np.inf, np.inf),
        (ppo_clip(0.2, 0.25, dual=3.0), -2.0, 6, 0),
    ],
)
def test_a_ratio_that_overflows_reaches_only_a_loss_that_depends_on_it(
    surrogate, advantage, value, slope
):
    signals = Signals.neutral(array([[True]], bool), np.float32)
    signals = replace(signals, advantage=array([[advantage]], np.float32))

    def loss(logp):
        context = Context(TokenStats(logp=logp), None, jnp.zeros_like(logp), None)
        return surrogate.loss(surrogate.prepare(signals, context), context)[0, 0]

    found = jax.value_and_grad(loss)(array([[100.0]], np.float32))
    assert (float(found[0]), float(found[1][0, 0])) == (value, slope)


@pytest.mark.parametrize(
    "make", [lambda: sigmoid_gated(0.0, 1.0), lambda: geometric_mean_clip(0.0)]
)
def test_widths_that_are_not_positive_are_refused(make):
    with pytest.raises(ValueError, match=r"must be positive, got 0\.0"):
        make()
