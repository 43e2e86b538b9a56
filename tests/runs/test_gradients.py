"""The gradient of an update is that of the composed function, whatever the micro-batches."""

import functools
import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import training_runs
from everyday import everyday
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from tiny_batch import BUDGET, ROWS, batch, second_policy, tiny

from rlvr_jax import methods
from rlvr_jax.methods.exploration.passk_advantage import subset_normalized
from rlvr_jax.objectives import Spec
from rlvr_jax.training import objective_gradient
from rlvr_jax.training.gradient import old_statistics, statistics_needed
from rlvr_jax.training.statistics import statistics
from rlvr_jax.training.update import scoring_options
from rlvr_jax.types import replace

pytestmark = pytest.mark.usefixtures("usual_promotion")


# Sums of some hundred terms in another order, against the largest.
ROUNDING = {"float64": 1e-12, "float32": 1e-6}
# Published shares choose nothing among 25 tokens, 11 have no 20 or 50 likeliest, all rollouts are
# above the entropy where one is dropped, and groups have 4 rollouts.
CHANGED = {
    "gtpo": {"entropy_threshold": 10.0},
    "passk_advantage": {"advantage": subset_normalized(k=2)},
    "clip_cov": {"fraction": 0.2, "covariance_low": 0.0},
    "kl_cov": {"fraction": 0.2},
    "capo_curvature": {"top_k": 5},
    "sdpo": {"top_k": 5},
}
freshness = pytest.mark.parametrize("fresh", [True, False], ids=["fresh", "stale"])


@functools.cache
def objective_of(name):
    return methods.recipe(name, **CHANGED.get(name, {})).objective


@functools.cache
def gradient_program(name, micro_batches, dtype="float64"):
    model, other = tiny(dtype)[0], second_policy(dtype)
    return jax.jit(
        lambda params, rollouts, fresh: objective_gradient(
            model,
            objective_of(name),
            params,
            rollouts,
            objective_of(name).init(Spec(4, ROWS, BUDGET)),
            jax.random.key(3),
            fresh=fresh,
            micro_batches=micro_batches,
            other=other,
        )
    )


@functools.cache
def gradient(name, fresh, micro_batches=1, dtype="float64"):
    return gradient_program(name, micro_batches, dtype)(tiny(dtype)[1], batch(dtype), fresh)


def assert_same_gradient(found, wanted):
    rounding = ROUNDING[str(wanted.loss.dtype)]

    def assert_close(found, wanted):
        np.testing.assert_allclose(found, wanted, rtol=rounding, atol=rounding)

    assert_close(found.loss, wanted.loss)
    assert_close(optax.tree.norm(found.grads), optax.tree.norm(wanted.grads))
    largest = max(float(jnp.abs(leaf).max()) for leaf in jax.tree.leaves(wanted.grads))
    assert largest > 0
    for a, b in zip(*map(jax.tree.leaves, (found.grads, wanted.grads)), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=rounding * largest)
    for name, value in wanted.metrics.items():
        assert_close(found.metrics[name], value)


@functools.cache
def composed_program(name):
    """Loss and gradient of an objective by JAX alone, with no step in between."""
    model, other = tiny()[0], second_policy()
    own = objective_of(name)

    def loss(params, rollouts, fresh):
        needs, options = statistics_needed(own), scoring_options(own)
        stats = statistics(model, params, rollouts, needs, options, other=other)
        now = jax.lax.stop_gradient(stats)
        old = {field: now.get(name) for field, name in old_statistics(own).items()}
        old["old_logp"] = jnp.where(fresh, now.logp, rollouts.old_logp)  # others are not recorded
        state = own.init(Spec(4, ROWS, BUDGET))
        return own.loss(stats, rollouts.replace(**old), state, jax.random.key(3))[0]

    return jax.jit(jax.value_and_grad(loss))


@pytest.mark.thorough
@training_runs.every_trainable_method("clip_cov")
@freshness
def test_gradient_is_that_of_the_composed_function(name, fresh):
    loss, grads = composed_program(name)(tiny()[1], batch(), fresh)
    found = gradient(name, fresh)
    assert_same_gradient(found, replace(found, loss=loss, grads=grads))


# One without and one with statistics over the batch; the latter also draws at random.
@pytest.mark.thorough
@training_runs.every_trainable_method("grpo", "clip_cov")
@freshness
@pytest.mark.parametrize("dtype", everyday(ROUNDING, "float64"))
@pytest.mark.parametrize("micro_batches", [pytest.param(2, marks=pytest.mark.slow), 4])
def test_micro_batches_change_nothing(name, fresh, micro_batches, dtype):
    whole = gradient(name, fresh, dtype=dtype)
    assert whole.loss.dtype == dtype
    assert_same_gradient(gradient(name, fresh, micro_batches, dtype), whole)


@pytest.mark.thorough
@pytest.mark.parametrize("micro_batches", everyday([1, 2], 2))
def test_a_prompt_computed_once_for_its_rows_changes_nothing(micro_batches):
    model, params = tiny()
    rollouts = batch()
    prompts = jax.tree.map(
        lambda x: jnp.repeat(x[::4], 4, axis=0), (rollouts.prompt_tokens, rollouts.prompt_length)
    )
    rollouts = rollouts.replace(prompt_tokens=prompts[0], prompt_length=prompts[1])
    own = objective_of("clip_cov")

    def found(shared, micro_batches):
        state = own.init(Spec(4, ROWS, BUDGET))
        options = dict(fresh=False, micro_batches=micro_batches, shared=shared)
        return jax.jit(
            lambda: objective_gradient(
                model, own, params, rollouts, state, jax.random.key(3), **options
            )
        )()

    assert_same_gradient(found(4, micro_batches), found(1, 1))


@pytest.mark.thorough
@training_runs.every_trainable_method("clip_cov")
def test_rows_on_eight_devices_give_the_gradient_of_one(name):
    mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
    rollouts = jax.device_put(batch(), NamedSharding(mesh, PartitionSpec("data")))
    params = jax.device_put(tiny()[1], NamedSharding(mesh, PartitionSpec()))
    found = gradient_program(name, 1)(params, rollouts, False)
    assert len(found.stats.logp.sharding.device_set) == 8
    assert_same_gradient(jax.device_get(found), gradient(name, False))


# GRPO's own KL would tell every token something.
@pytest.mark.slow
@pytest.mark.parametrize("name", ["dr_grpo", "clip_cov"])
def test_micro_batches_that_are_told_nothing_are_not_pulled_back(name, monkeypatch):
    visited = []

    @jax.custom_vjp
    def counted(stats):
        return stats

    def visit(_, cotangents):
        jax.debug.callback(visited.append, jnp.sum(cotangents.logp))
        return (cotangents,)

    counted.defvjp(lambda stats: (stats, None), visit)
    module = sys.modules[objective_gradient.__module__]
    monkeypatch.setattr(
        module, "statistics", lambda *args, **how: counted(statistics(*args, **how))
    )
    own, state = objective_of(name), objective_of(name).init(Spec(4, ROWS, BUDGET))
    for second_group, expected in ([1.0, 0, 0, 1], 2), ([1.0, 1, 1, 1], 1):
        visited.clear()
        reward = jnp.asarray([1.0, 0, 0, 1, *second_group])
        group = jnp.arange(ROWS, dtype=jnp.int32) // 4
        rollouts = batch().replace(reward=reward, outcome=reward, group=group)
        arguments = (tiny()[0], own, tiny()[1], rollouts, state, jax.random.key(3))
        objective_gradient(*arguments, fresh=False, micro_batches=2)
        jax.effects_barrier()
        assert len(visited) == expected


def test_micro_batches_that_do_not_divide_the_rows_are_refused():
    model, params = tiny()
    with pytest.raises(ValueError, match="micro_batches must divide the 8 rows, got 3"):
        objective_gradient(
            model, objective_of("rloo"), params, batch(), {}, None, fresh=True, micro_batches=3
        )
