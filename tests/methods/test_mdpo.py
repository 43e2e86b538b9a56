"""The schedule of the proximity term."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.methods.clipping.mdpo import MirrorState, mirror_descent_kl
from rlvr_jax.objectives import Context
from rlvr_jax.types import Signals


@pytest.mark.parametrize(
    ("updates", "size"), [(0, 1.0), (2, 1.0), (3, 0.75), (11, 0.25), (100, 0.25)]
)
def test_an_outer_step_lasts_several_updates_and_empty_ones_do_not_count(updates, size):
    held = mirror_descent_kl(num_steps=4, updates_per_step=3)
    batch, stats = golden.rollouts("b"), golden.stats("b")
    state = MirrorState(jnp.asarray(updates, jnp.int32))
    context = Context(stats, batch, batch.old_logp, None)
    for mask, more in ((batch.mask, 1), (batch.mask & False, 0)):
        signals = Signals.neutral(mask, np.float64)
        signals, new, metrics = held.apply(signals, context, state)
        assert new.updates == updates + more
        assert metrics["mirror_step_size"] == size
        np.testing.assert_array_equal(signals.penalty, stats.records["kl"] / size)


def test_numbers_below_one_are_refused():
    with pytest.raises(ValueError, match="num_steps must be at least 1, got 0"):
        mirror_descent_kl(0, 1)
