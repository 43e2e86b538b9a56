"""RewardMap: pays partial credit for routes on a map, with questions in order of difficulty."""

import numpy as np
import pytest
from reward_rows import rollouts
from training_runs import trained, values

from rlvr_jax.experience import experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods.rewards.rewardmap import kinds_in_order, partial_credit


@pytest.mark.slow
def test_routes_are_scored_and_kinds_come_in_order(model, tmp_path):
    changes = dict(hyperparameters=("clip_low=0.2",), prompts_per_step=8)
    lines = trained(model, tmp_path / "run", "rewardmap", task="text_tasks:counts", **changes)
    assert max(values(lines, "experience/reward/score")) > 0


def test_partial_credit_is_counted_where_a_route_is_incorrect():
    batch = rollouts(
        [[15.0, 10.0], [1.5, 3.0], [-1.5, -3.0], [0.0, 0.0]], outcome=(1.0, 0.0, 0.0, 0.0)
    )
    score, _, metrics = partial_credit().apply(batch, (), None)
    np.testing.assert_array_equal(score, [15, 1.5, -1.5, 0])
    assert metrics["partial_credit"] == 0.25 and metrics["reward/score"] == 3.75


def test_every_prompt_of_a_kind_comes_before_the_next_kind():
    chain = experience(kinds_in_order(["odd"]))
    found = [
        [request.number for request in collected.batch.requests[::4]]
        for collected, _, _ in numpy_actor.walk(chain, steps=6)
    ]
    numbers = np.array(found).reshape(-1)
    first, second = numbers[:12], numbers[12:]
    for epoch in (first, second):
        np.testing.assert_array_equal(epoch % 2, [1] * 6 + [0] * 6)
        assert sorted(epoch.tolist()) == list(range(12))
    assert first.tolist() != second.tolist()
    with pytest.raises(ValueError, match="kinds must be those of the train prompts"):
        numpy_actor.walk(experience(kinds_in_order(["none"])), steps=1)
