"""Groups that are trained when they are complete."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rlvr_jax.experience import experience, plain, queued
from rlvr_jax.experience.laws import numpy_actor


def walked(steps=6, **options):
    chain = experience(draw=queued(**{"staleness": 2, "window": 0.3, **options}))
    return [found for found, _, _ in numpy_actor.walk(chain, steps=steps)]


def test_groups_are_whole_and_none_waits_too_long():
    asked, trained = 0, 0
    for step, found in enumerate(walked()):
        told = found.metrics
        assert [len(rows) for rows in found.batch.groups] == [4] * int(told["groups"])
        asked, trained = asked + 4, trained + int(told["groups"])
        assert told["waiting_groups"] == asked - trained
        # All that was asked two steps ago is trained.
        assert trained >= 4 * (step - 1)
    assert any(found.metrics["waiting_groups"] > 0 for found in walked())


def test_all_tokens_are_trained_with_the_records_of_when_they_were_drawn():
    stale = 0
    for found in walked():
        rollouts = found.batch.rollouts
        places = np.arange(rollouts.mask.shape[1])[None]
        assert_array_equal(rollouts.mask, places < rollouts.length[:, None])
        # The actor's log-probs are a rule of the token.
        logp = numpy_actor.NumpyActor._logp(rollouts.tokens, 0)
        on = rollouts.mask
        assert_allclose(rollouts.behaviour_logp[on], logp[on], rtol=1e-6)
        stale += found.metrics["stale_tokens"]
    assert stale > 0


def test_redundant_rows_are_dropped_once_a_group_is_complete():
    for found in walked(redundancy=2):
        assert found.metrics["dropped_rows"] == 2 * found.metrics["groups"]
        assert [len(rows) for rows in found.batch.groups] == [4] * int(found.metrics["groups"])


def test_without_staleness_nothing_waits():
    for found in walked(staleness=0):
        assert found.metrics["groups"] == 4 and found.metrics["waiting_groups"] == 0
        assert found.metrics["stale_tokens"] == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"staleness": -1}, "queued: staleness must be at least 0, got -1"),
        ({"redundancy": -1}, "queued: redundancy must be at least 0, got -1"),
        ({"window": 0}, r"queued: window must be in \(0, 1\], got 0"),
    ],
)
def test_queues_that_cannot_be_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        queued(**options)


def test_plain_draws_have_no_versions():
    ((found, _, _),) = numpy_actor.walk(experience(draw=plain()), steps=1)
    assert "version" not in found.batch.rollouts.records
    assert "version" in walked(1)[0].batch.rollouts.records
