"""SIREN: hold the nucleus entropy of the most uncertain tokens at its first value."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np
import pytest
from adapters.common import only
from golden_vectors import assert_agrees

from rlvr_jax.methods.entropy.siren import anchored_entropy, peak_entropy
from rlvr_jax.objectives import UpdatePlan


def test_the_first_batch_is_the_anchor_and_the_second_is_pulled_back():
    batch, stats = golden.rollouts("b"), golden.stats("b")
    own = only(anchored_entropy(1.0)).objective
    first = golden.step(own, stats, batch)
    assert first.loss == 0
    moved = stats.replace(nucleus_entropy=stats.records["nucleus_entropy"] + 0.5)
    second = golden.step(own, moved, batch, state=first.state)
    assert second.loss > 0 and np.asarray(second.dstats.records["nucleus_entropy"]).sum() > 0
    anchor = second.state["anchored_entropy"].anchor
    assert_agrees(anchor, first.state["anchored_entropy"].anchor)


@pytest.mark.thorough
def test_the_anchor_of_a_batch_in_parts_is_their_mean():
    batch, stats = golden.rollouts("b"), golden.stats("b")
    own = only(anchored_entropy(1.0, anchor_updates=2)).objective
    step = golden.step(own, stats, batch)
    moved = stats.replace(nucleus_entropy=stats.records["nucleus_entropy"] + 0.5)
    found = [step := golden.step(own, moved, batch, state=step.state) for _ in range(2)]
    assert found[0].loss == 0
    entropies = [s.records["nucleus_entropy"] for s in (stats, moved)]
    first, second = (peak_entropy(entropy, batch, 0.8)[0] for entropy in entropies)
    assert_agrees(found[1].metrics["entropy_anchor"], (first + second) / 2)
    assert_agrees(found[1].loss, ((second - first) / 2) ** 2)
    assert own.remarks(UpdatePlan(updates_per_batch=2, group_size=4)) == []
    (remark,) = only(anchored_entropy(1.0)).objective.remarks(UpdatePlan(2, 4))
    assert "one of 2 of a batch" in remark


def test_equal_entropies_have_no_peak_and_empty_rows_count_as_zero():
    batch = golden.rollouts("b")
    mean, peaks = peak_entropy(jnp.ones_like(batch.entropy), batch, 0.8)
    assert mean == 0 and not np.asarray(peaks).any()
    none, _ = peak_entropy(batch.entropy, batch.replace(mask=batch.mask & False), 0.8)
    assert none == 0
