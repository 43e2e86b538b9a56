"""Groups that are trained when they are complete."""

from dataclasses import replace

import numpy as np
import pytest
import training_runs
from numpy.testing import assert_allclose, assert_array_equal

from rlvr_jax.experience import experience, plain, queued
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.runs.step import collect

FLOAT32 = 1e-5  # log-probs of a float32 sampler and scorer, of at most some nats


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


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    policy = training_runs.write_policy(tmp_path_factory.mktemp("policy"))
    # Of more rows than a group has the first ones end in different windows.
    given = ("staleness=1", "window=0.2", "redundancy=4")
    return training_runs.settings(policy, "unused", method="rollart", hyperparameters=given)


def test_synchronous_groups_are_those_of_plain_sampling(settings):
    run = training_runs.prepared(replace(settings, hyperparameters=("staleness=0", "window=0.3")))
    other = training_runs.prepared(replace(settings, method="grpo", hyperparameters=()))
    assert other.recipe.experience is None or other.recipe.experience.draw[1].label == "plain()"
    one, two = (collect(r, r.initial_state(), 0).batch.rollouts for r in (run, other))
    for name in ("tokens", "mask", "length", "group", "truncated", "outcome"):
        assert_array_equal(one.get(name), two.get(name))
    assert_allclose(one.behaviour_logp, two.behaviour_logp, atol=FLOAT32)


@pytest.mark.slow
def test_it_trains_on_tokens_of_several_versions(settings, tmp_path):
    config = replace(settings, run_dir=tmp_path / "run", steps=6)
    training_runs.quietly(config)
    lines = training_runs.metrics(tmp_path / "run")
    stale = training_runs.values(lines, "experience/stale_tokens")
    importance = training_runs.values(lines, "importance/max")
    assert sum(stale) > 0 and np.all(np.isfinite(training_runs.values(lines, "loss")))
    assert set(training_runs.values(lines, "ratio/max")) == {1.0}
    # What other weights drew has another importance, what these drew has none.
    moved = [abs(weight - 1) > 1e-4 for weight in importance]
    assert any(moved) and not any(m and old == 0 for m, old in zip(moved, stale, strict=True))


def test_a_carried_row_is_scored_in_its_context(settings):
    run = training_runs.prepared(settings)
    state = run.initial_state()
    first = collect(run, state, 0)
    found = collect(run, replace(state, data=first.state), 1)
    rollouts = found.batch.rollouts
    assert found.metrics["experience/stale_tokens"] > 0
    logp = run.scorer(state)(rollouts, ["logp"], "current")["logp"]
    # The weights have not moved in between.
    assert_allclose(rollouts.behaviour_logp[rollouts.mask], logp[rollouts.mask], atol=FLOAT32)


def test_plain_draws_have_no_versions():
    ((found, _, _),) = numpy_actor.walk(experience(draw=plain()), steps=1)
    assert "version" not in found.batch.rollouts.records
    assert "version" in walked(1)[0].batch.rollouts.records
