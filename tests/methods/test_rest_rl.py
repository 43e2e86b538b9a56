"""ReST-RL: trains on prompts of varied outcomes and on continuations of their best responses."""

import numpy as np
import pytest
import training_runs
from walks import walked


def test_starts_wait_in_a_queue_and_begin_as_the_best_answers_did():
    given = {"rated": 4, "rating_samples": 4, "capacity": 40}
    asked, best = 0, {}
    for collected, told, state in walked("rest_rl", 8, **given):
        batch, rollouts = collected.batch, collected.batch.rollouts
        for rows in batch.groups:
            request = batch.requests[rows[0]]
            if len(request.given):
                asked += 1
                length = len(request.given)
                assert (rollouts.tokens[rows, :length] == request.given).all()
                assert not rollouts.mask[rows, :length].any()
                assert tuple(request.given) in best[request.number]
        (rated,) = [b for b in collected.seen if b.requests[0].rating]
        for rows, outcomes in zip(rated.groups, rated.outcomes(), strict=True):
            row = rows[np.argmax(outcomes)]
            ids = rated.rollouts.tokens[row].tolist()
            known = best.setdefault(rated.requests[row].number, set())
            if outcomes.max() == 1:
                known |= {tuple(ids[:end]) for end in range(1, len(ids))}
        assert told["queue"] == state["start_from_prefixes"].held
        extra = rollouts.reward - rollouts.outcome
        np.testing.assert_allclose(extra, np.where(rollouts.truncated, 0, 1e-3), atol=1e-7)
    assert asked > 0


@pytest.mark.slow
def test_training_from_prefixes_of_the_best_answers(tmp_path):
    given = ("rated=8", "rating_samples=4")
    steps = training_runs.on_brackets("rest_rl", tmp_path, steps=4, hyperparameters=given)
    assert max(training_runs.values(steps, "experience/asked_prefixes")) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0
