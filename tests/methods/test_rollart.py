"""RollArt: groups are trained once they are complete, within a bounded number of steps."""

from dataclasses import replace

import numpy as np
import pytest
import training_runs
from numpy.testing import assert_allclose, assert_array_equal

from rlvr_jax.runs.step import collect

FLOAT32 = 1e-5  # log-probs of a float32 sampler and scorer, of at most some nats


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    policy = training_runs.write_policy(tmp_path_factory.mktemp("policy"))
    # Of more rows than a group has the first ones end in different windows.
    given = ("staleness=1", "window=0.2", "redundancy=4")
    return training_runs.settings(policy, "unused", method="rollart", hyperparameters=given)


@pytest.mark.thorough
def test_synchronous_groups_are_those_of_plain_sampling(settings):
    run = training_runs.prepared(replace(settings, hyperparameters=("staleness=0", "window=0.3")))
    other = training_runs.prepared(replace(settings, method="grpo", hyperparameters=()))
    assert other.recipe.experience is None or other.recipe.experience.draw[1].label == "plain()"
    one, two = (collect(r, r.initial_state(), 0).batch.rollouts for r in (run, other))
    for name in ("tokens", "mask", "length", "group", "truncated", "outcome"):
        assert_array_equal(getattr(one, name), getattr(two, name))
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


@pytest.mark.thorough
def test_a_carried_row_is_scored_in_its_context(settings):
    run = training_runs.prepared(settings)
    state = run.initial_state()
    first = collect(run, state, 0)
    found = collect(run, replace(state, host=replace(state.host, data=first.state)), 1)
    rollouts = found.batch.rollouts
    assert found.metrics["experience/stale_tokens"] > 0
    logp = run.scorer(state.device)(rollouts, ["logp"], "current")["logp"]
    # The weights have not moved in between.
    assert_allclose(rollouts.behaviour_logp[rollouts.mask], logp[rollouts.mask], atol=FLOAT32)
