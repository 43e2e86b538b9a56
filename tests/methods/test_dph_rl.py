"""DPH-RL: prompts that the first policy solves are put aside, and their answers rehearsed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import training_runs

from rlvr_jax.experience import rehearse
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.store import oldest
from rlvr_jax.methods import recipe
from rlvr_jax.methods.exploration.dph_rl import (
    alpha_generator,
    forward_kl_generator,
    jensen_shannon_generator,
)
from rlvr_jax.runs import TrainConfig

RATED, SAMPLES = 8, 2


GENERATORS = (forward_kl_generator, jensen_shannon_generator, alpha_generator(0.2))


class Knowing(numpy_actor.NumpyActor):
    """Is always right about even prompts and never about odd ones."""

    def grade(self, batch):
        graded = super().grade(batch)
        outcome = np.array([1 - request.number % 2 for request in batch.requests], np.float32)
        grades = [type(grade)(float(x)) for grade, x in zip(graded.grades, outcome, strict=True)]
        rows = graded.with_rollouts(outcome=outcome, reward=outcome)
        return type(graded)(rows.rollouts, rows.requests, grades)


def walked(steps=4, fraction=0.25):
    made = recipe("dph_rl", rated=RATED, rating_samples=SAMPLES, fraction=fraction)
    return numpy_actor.walk(made.experience, Knowing(), steps=steps)


def test_solved_prompts_are_found_before_training_and_asked_no_more():
    found = walked(fraction=1.0)
    solved = found[0][2]["set_solved_aside"]
    rated = {
        request.number for batch in found[0][0].seen for request in batch.requests if request.rating
    }
    assert len(rated) == RATED
    assert set(np.flatnonzero(solved)) == {number for number in rated if number % 2 == 0}
    for collected, _, _ in found[1:]:
        own = ~collected.batch.rollouts.records["off_policy"]
        asked = {
            request.number
            for request, there in zip(collected.batch.requests, own, strict=True)
            if there
        }
        assert not asked & set(np.flatnonzero(solved)) and len(asked) == 4
        assert not any(request.rating for batch in collected.seen for request in batch.requests)


def test_answers_of_the_first_policy_join_every_later_batch():
    found = walked()
    store = found[0][2]["rehearse"]
    kept = {
        (int(store.rows["number"][place]), store.rows["tokens"][place].tobytes())
        for place in oldest(store)
    }
    numbers = [number for number, _ in kept]
    assert sorted(numbers) == sorted(set(numbers))  # one answer of each prompt
    assert not found[0][0].batch.rollouts.records["off_policy"].any()
    for collected, _, state in found[1:]:
        batch = collected.batch
        rows = np.flatnonzero(batch.rollouts.records["off_policy"])
        assert len(rows) == min(len(kept), 4) == collected.metrics["rehearsed"]
        assert rows.tolist() == list(range(len(batch) - len(rows), len(batch)))
        told = {(batch.requests[r].number, batch.rollouts.tokens[r].tobytes()) for r in rows}
        assert told <= kept and len(told) == len(rows)
        assert batch.rollouts.mask[rows].any(axis=1).all()
        groups = batch.rollouts.group
        assert all(np.sum(groups == groups[row]) == 1 for row in rows)
        assert state["rehearse"].held == len(kept)


def test_nothing_is_rehearsed_where_nothing_is_always_solved():
    chain = recipe("dph_rl", rated=RATED, rating_samples=SAMPLES).experience
    for collected, _, _ in numpy_actor.walk(chain, numpy_actor.NumpyActor(chance=-1.0)):
        assert collected.metrics["rehearsed"] == 0
        assert not collected.batch.rollouts.records["off_policy"].any()


def test_a_share_of_nothing_is_refused():
    with pytest.raises(ValueError, match="rehearse: fraction must be positive, got 0"):
        rehearse(0.0, capacity=4)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "hyperparameters", "acted"),
    [
        pytest.param(
            *("dph_rl", ("rated=64", "rating_samples=2"), "experience/rehearsed"),
            marks=pytest.mark.slow,
        ),
        ("hybrid_npg", (), "experience/traces"),
    ],
)
def test_training_learns_from_rows_of_another_policy(name, hyperparameters, acted, tmp_path):
    config = TrainConfig.of(
        task="brackets:train=96",
        method=name,
        hyperparameters=hyperparameters,
        run_dir=tmp_path,
        steps=3,
        prompts_per_step=4,
        samples_per_prompt=4,
        evaluation_prompts=8,
        evaluation_samples=4,
    )
    training_runs.quietly(config)
    steps = [line for line in training_runs.metrics(tmp_path) if acted in line]
    assert sum(line[acted] for line in steps) > 0
    assert any(line["gradient_norm"] > 0 for line in steps)
    if name == "dph_rl":
        assert any(
            value > 0
            for line in steps
            for metric, value in line.items()
            if metric.startswith("off_policy_divergence/") and value is not None
        )
    else:
        assert any(line["critic/gradient_norm"] > 0 for line in steps)


@pytest.mark.parametrize("generator", GENERATORS)
def test_generators_are_silent_at_the_reference_and_positive_elsewhere(generator):
    log_u = jnp.asarray([-2.0, -0.1, 0.0, 0.1, 2.0])
    value, slope = jax.vmap(jax.value_and_grad(lambda x: generator(x, 0.0 * x, x)))(log_u)
    assert (np.asarray(value)[[0, 1, 3, 4]] > 0).all()
    assert abs(value[2]) < 1e-15 and abs(slope[2]) < 1e-15  # rounding of 1 - 1


@pytest.mark.parametrize("generator", GENERATORS)
def test_generators_are_finite_without_gradient_where_they_are_clamped(generator):
    value, slope = jax.value_and_grad(lambda x: generator(x, 0.0 * x, x))(jnp.asarray(-300.0))
    assert np.isfinite(value) and slope == 0


def test_jensen_shannon_forgives_what_is_given_up():
    found = jensen_shannon_generator(*(jnp.asarray(x) for x in (-20.0, 0.0, 0.0)))
    np.testing.assert_allclose(found, np.log(2), rtol=1e-6)  # e^-20 is left
