"""Expert iteration: right answers are kept once, and imitated in later rounds."""

import numpy as np
import pytest
import training_runs

from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.store import oldest
from rlvr_jax.methods import recipe
from rlvr_jax.methods.baselines.expert_iteration import weighted_places


class Repeating(numpy_actor.NumpyActor):
    """Draws one of two answers, both right."""

    def draw(self, requests, key, sampling=None, constants=None):
        batch = super().draw(requests, key, sampling, constants)
        tokens = np.zeros_like(batch.rollouts.tokens)
        tokens[:, 0] = 1 + batch.rollouts.tokens[:, 0] % 2
        length = np.ones_like(batch.rollouts.length)
        mask = np.arange(tokens.shape[1]) < length[:, None]
        none = np.zeros_like(batch.rollouts.truncated)
        return batch.with_rollouts(tokens=tokens, length=length, mask=mask, truncated=none)


def walked(actor, steps, **hyperparameters):
    chain = recipe("expert_iteration", round_steps=2, **hyperparameters).experience
    return chain, numpy_actor.walk(chain, actor, steps=steps)


def test_the_first_round_draws_and_later_ones_imitate_what_was_kept_before():
    _, found = walked(numpy_actor.NumpyActor(), 6)
    imitated = [collected.metrics["imitated_answers"] for collected, _, _ in found]
    assert imitated[:2] == [0, 0] and min(imitated[2:]) > 0
    for step, (collected, _, _) in enumerate(found):
        rollouts = collected.batch.rollouts
        assert not rollouts.mask.any() and rollouts.records["supervised"].all() == (step >= 2)
        if step >= 2:
            store = found[step // 2 * 2 - 1][2]["imitate_correct"]
            kept = {
                (int(store.rows["number"][place]), store.rows["tokens"][place].tobytes())
                for place in oldest(store)
            }
            answers = {
                (request.number, tokens.tobytes())
                for request, tokens in zip(collected.batch.requests, rollouts.tokens, strict=True)
            }
            assert answers <= kept and len(answers) == len(collected.batch)


def test_an_answer_is_kept_once():
    _, found = walked(Repeating(chance=1.0), 6, per_prompt=4)
    store = found[-1][2]["imitate_correct"]
    numbers, tokens = (store.rows[name][oldest(store)] for name in ("number", "tokens"))
    answers = [(int(n), row.tobytes()) for n, row in zip(numbers, tokens, strict=True)]
    assert len(answers) == len(set(answers)) == 2 * len(set(numbers.tolist()))


def test_a_prompt_has_its_share_of_answers_at_most():
    _, found = walked(numpy_actor.NumpyActor(chance=1.0), 6, per_prompt=3)
    store = found[-1][2]["imitate_correct"]
    assert np.bincount(store.rows["number"][oldest(store)]).max() == 3


def test_a_round_begins_with_the_first_weights():
    chain, found = walked(numpy_actor.NumpyActor(), 5)
    state = found[-1][2]
    events = [chain.events(state, step) for step in range(5)]
    assert [bool(asked) for asked in events] == [False, False, True, False, True]
    assert events[2] == {"restart", "reset"}


def test_nothing_right_is_nothing_kept():
    _, found = walked(numpy_actor.NumpyActor(chance=-1.0), 4)
    assert all(collected.metrics["stored_answers"] == 0 for collected, _, _ in found)
    assert not any(
        collected.batch.rollouts.records["supervised"].any() for collected, _, _ in found
    )


@pytest.mark.parametrize("name", ["round_steps", "per_prompt"])
def test_counts_are_at_least_one(name):
    with pytest.raises(ValueError, match="must be at least 1, got 0"):
        recipe("expert_iteration", **{name: 0})


@pytest.mark.slow
def test_training_imitates(tmp_path):
    folder = training_runs.write_policy(tmp_path / "policy")
    config = training_runs.settings(
        folder,
        tmp_path / "run",
        method="expert_iteration",
        hyperparameters=("round_steps=2",),
        steps=4,
        prompts_per_step=8,
    )
    training_runs.quietly(config)
    steps = [
        line for line in training_runs.metrics(tmp_path / "run") if "experience/new_answers" in line
    ]
    imitated = [line["experience/imitated_answers"] for line in steps]
    assert imitated[:2] == [0, 0] and min(imitated[2:]) > 0
    moved = [line["gradient_norm"] > 0 for line in steps]
    assert moved == [False, False, True, True]
    assert steps[-1]["loss"] > 0


def test_weighted_places_follow_the_weights():
    random = np.random.default_rng(0)
    places, weights = np.array([3, 7]), np.array([1.0, 3.0])
    first = [weighted_places(places, 1, weights, random)[0] for _ in range(4000)]
    # four standard deviations of a share of 4000 draws
    assert abs(np.mean(np.array(first) == 7) - 0.75) < 4 * np.sqrt(0.75 * 0.25 / 4000)
