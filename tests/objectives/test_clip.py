"""The rule at the bounds of the clip, and what each surrogate trains."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from golden_vectors import array, rollouts

from rlvr_jax.objectives import (
    Context,
    clamped_token_ratio,
    clip_to_trusted,
    importance_weighted,
    is_clipped,
    ppo_clip,
)
from rlvr_jax.types import Signals, TokenStats, replace

LOW, HIGH = 0.25, 0.5  # exact in binary, so that a ratio can stand on a bound
RATIOS = np.array([0.5, 0.75, 1.0, 1.5, 2.0])  # below, on, inside, on, above


def signals_at(ratios, advantage):
    signals = Signals.neutral(array(np.ones((1, len(ratios))), bool), np.float64)
    return replace(
        signals,
        ratio=ratios[None],
        advantage=jnp.full_like(signals.weight, advantage),
        clip_low=jnp.full_like(signals.weight, LOW),
        clip_high=jnp.full_like(signals.weight, HIGH),
    )


@pytest.mark.parametrize(
    "advantage, slopes, clipped",
    [
        (1.0, [-1, -1, -1, -1, 0], [0, 0, 0, 0, 1]),
        (-1.0, [0, 1, 1, 1, 1], [1, 0, 0, 0, 0]),
        (0.0, [0, 0, 0, 0, 0], [0, 0, 0, 0, 0]),
    ],
)
def test_a_ratio_on_a_bound_is_still_trained_and_beyond_it_is_not(advantage, slopes, clipped):
    def total(ratios):
        return jnp.sum(ppo_clip(LOW, HIGH).loss(signals_at(ratios, advantage), None))

    np.testing.assert_array_equal(jax.jit(jax.grad(total))(array(RATIOS, float)), slopes)
    found = is_clipped(signals_at(array(RATIOS, float), advantage))[0]
    np.testing.assert_array_equal(found, np.array(clipped, bool))


def test_clipping_has_gradient_one_on_the_bounds():
    def total(ratios):
        return jnp.sum(clip_to_trusted(signals_at(ratios, 1.0)))

    np.testing.assert_array_equal(jax.grad(total)(array(RATIOS, float)), [0, 1, 1, 1, 0])


def test_without_bounds_nothing_is_clipped():
    signals = replace(
        Signals.neutral(array(np.ones((1, 3)), bool), np.float64),
        ratio=array([[1e-9, 1.0, 1e9]], float),
        advantage=array([[1.0, -1.0, 1.0]], float),
    )
    np.testing.assert_array_equal(clip_to_trusted(signals), signals.ratio)
    assert not is_clipped(signals).any()


def test_clamped_ratio_is_finite_in_float32_where_the_plain_one_overflows():
    logp, old = array([[0.0, -1.0]], np.float32), array([[-200.0, -1.0]], np.float32)
    context = Context(TokenStats(logp=logp), rollouts("b"), old, None)
    signals = Signals.neutral(array(np.ones((1, 2)), bool), np.float32)
    plain = importance_weighted().prepare(signals, context).ratio
    clamped = importance_weighted(clamped_token_ratio).prepare(signals, context).ratio
    assert np.isinf(plain[0, 0])
    np.testing.assert_allclose(clamped, [[np.exp(20), 1.0]], rtol=1e-6)  # float32


@pytest.mark.parametrize("name", ["low", "high"])
def test_negative_half_widths_are_refused(name):
    with pytest.raises(ValueError, match=f"ppo_clip: {name} must be at least 0, got -0.1"):
        ppo_clip(**{"low": 0.2, "high": 0.2, name: -0.1})
