"""Asks that only rate are drawn, graded and seen, and never trained."""

import numpy as np
import pytest

from rlvr_jax.experience import Curriculum, SampleRequest, experience, refill, uniform
from rlvr_jax.experience.curricula.batches import requests_for
from rlvr_jax.experience.laws import numpy_actor


def rating(trained=(0, 1), rated=(1, 2, 3)):
    """A curriculum that trains on some prompts and rates others, with two samples each."""

    def propose(requests, state, turn):
        del requests, state
        task = turn.setting.task
        told = [
            SampleRequest(task.train[n], n, samples=2, round=turn.round, rating=True) for n in rated
        ]
        return told + requests_for(turn, trained)

    return Curriculum(propose)


def collected(chain, prompts=2):
    return numpy_actor.walk(chain, steps=1, own=numpy_actor.setting(chain, prompts=prompts))[0][0]


@pytest.mark.thorough
def test_ratings_are_seen_and_left_out_of_the_batch():
    found = collected(experience(rating()))
    ratings, trained = found.seen
    assert [request.number for request in ratings.requests] == [1, 1, 2, 2, 3, 3]
    assert all(request.rating for request in ratings.requests) and len(ratings.grades) == 6
    assert {request.number for request in found.batch.requests} == {0, 1}
    assert not any(request.rating for request in trained.requests + found.batch.requests)
    sampled = sum(float(part.rollouts.mask.sum()) for part in found.seen)
    assert found.metrics["sampled_tokens"] == sampled


def test_a_prompt_that_is_rated_and_trained_is_answered_twice():
    found = collected(experience(rating()))
    rated, trained = (
        part.take(
            np.flatnonzero([request.number == 1 for request in part.requests])
        ).rollouts.tokens
        for part in found.seen
    )
    assert np.any(rated != trained[: len(rated)])


def test_further_rounds_rate_too():
    chain = experience(rating(), stages=[refill(uniform, rounds=2)])
    found = collected(chain, prompts=3)
    assert [part.requests[0].rating for part in found.seen] == [True, False, True, False]


def test_a_curriculum_that_only_rates_is_refused():
    with pytest.raises(ValueError, match=r"rating: propose must return requests to train on"):
        collected(experience(rating(trained=())))
