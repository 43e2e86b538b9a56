"""The update: one gradient however the rows are split, and nothing learned from nothing."""

import functools
import math
import re
import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import training_runs
from everyday import everyday
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from tiny_batch import BUDGET, REWARD, ROWS, batch, second_policy, tiny

from rlvr_jax import methods, objectives
from rlvr_jax.methods.entropy.entropy_bonus import adaptive_entropy_bonus
from rlvr_jax.methods.exploration.passk_advantage import subset_normalized
from rlvr_jax.objectives import Spec
from rlvr_jax.policy import Model
from rlvr_jax.training import TrainState, objective_gradient, update
from rlvr_jax.training.gradient import old_statistics, statistics_needed
from rlvr_jax.training.statistics import statistics
from rlvr_jax.training.update import check_needs, scoring_options
from rlvr_jax.types import replace

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


pytestmark = pytest.mark.usefixtures("usual_promotion")
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


CLIP = 0.2
CUSTOM = objectives.objective(
    advantage=objectives.group_normalized(),
    transforms=[objectives.drop_high_covariance(0.2, low=-1.0, high=9.0)],
    surrogate=objectives.ppo_clip(low=CLIP, high=CLIP),
    # It has state, and no gradient while its coefficient is 0.
    regularizers=[adaptive_entropy_bonus(target=9.0, step=1e-3)],
    aggregation=objectives.token_mean(),
)
OPTIMIZER = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(0.01, weight_decay=0.1))


@functools.cache
def program():
    return jax.jit(functools.partial(update, tiny("float32")[0], CUSTOM, OPTIMIZER))


def start():
    params = tiny("float32")[1]
    state = CUSTOM.init(Spec(4, ROWS, BUDGET))
    state = jax.tree.map(lambda x: x.astype(jnp.float32), state)
    return TrainState(params, OPTIMIZER.init(params), state, jnp.zeros((), jnp.int32))


def step(state, rollouts, fresh=True):
    return program()(state, rollouts, jax.random.key(0), fresh=fresh)


@functools.cache
def moved():
    """A state whose optimizer has momentum."""
    return step(start(), batch("float32"))[0]


def as_bytes(tree):
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(tree)]


def with_reward(reward):
    return batch("float32").replace(reward=jnp.asarray(reward, jnp.float32))


@pytest.mark.thorough
def test_an_update_moves_the_policy():
    assert as_bytes(moved().params) != as_bytes(start().params)
    assert moved().updates == 1


@pytest.mark.thorough
@pytest.mark.parametrize(
    "changes",
    [
        {"reward": jnp.full(ROWS, 0.1, jnp.float32)},
        {"mask": jnp.zeros((ROWS, BUDGET), bool)},
    ],
    ids=["equal rewards", "empty mask"],
)
def test_a_gradient_of_zero_leaves_parameters_and_optimizer_as_they_are(changes):
    # The bonus must be silent: with its first coefficient it is.
    before = replace(moved(), method_state=start().method_state)
    after, metrics, _ = step(before, batch("float32").replace(**changes))
    assert metrics["gradient_norm"] == 0 and metrics["skipped_updates"] == 1
    assert as_bytes(after.params) == as_bytes(before.params)
    assert as_bytes(after.optimizer_state) == as_bytes(before.optimizer_state)
    assert after.updates == before.updates + 1


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_reward_that_is_not_finite_leaves_everything_as_it_is(value):
    before = moved()
    after, metrics, _ = step(before, with_reward([value, *REWARD[1:]]))
    assert not np.isfinite(metrics["loss"]) or not np.isfinite(metrics["gradient_norm"])
    assert metrics["skipped_updates"] == 1
    for name in ("params", "optimizer_state", "method_state"):
        assert as_bytes(getattr(after, name)) == as_bytes(getattr(before, name))


def test_the_ratio_of_a_fresh_policy_is_exactly_one():
    _, metrics, record = step(moved(), batch("float32"), fresh=True)
    mask = np.asarray(batch().mask)
    assert (np.asarray(record["ratio"])[mask] == 1).all()
    assert not np.asarray(record["clipped"]).any()
    assert metrics["ratio/min"] == metrics["ratio/max"] == 1
    np.testing.assert_array_equal(record["old_logp"], record["logp"])


def test_a_stale_policy_is_compared_with_the_given_old_log_probs():
    rollouts = batch("float32")
    _, _, record = step(moved(), rollouts, fresh=False)
    mask = np.asarray(rollouts.mask)
    np.testing.assert_array_equal(record["old_logp"], rollouts.old_logp)
    expected = np.exp(np.asarray(record["logp"]) - np.asarray(rollouts.old_logp))
    np.testing.assert_allclose(np.asarray(record["ratio"])[mask], expected[mask], rtol=1e-6)


@pytest.mark.thorough
@pytest.mark.parametrize("fresh", [True, False], ids=["fresh", "stale"])
def test_what_is_needed_of_the_old_policy_is_measured_or_read(fresh):
    own = methods.recipe("ucas").objective
    fields = ("old_logsumexp", "old_mean_logit")
    recorded = {name: jnp.full((ROWS, BUDGET), 0.25, jnp.float32) for name in fields}
    rollouts = batch("float32").replace(**recorded)
    params = tiny("float32")[1]
    state = TrainState(params, OPTIMIZER.init(params), {}, jnp.zeros((), jnp.int32))
    run = jax.jit(functools.partial(update, tiny("float32")[0], own, OPTIMIZER))
    _, _, record = run(state, rollouts, jax.random.key(0), fresh=fresh)
    for name in fields:
        values = np.asarray(record[name])[np.asarray(rollouts.mask)]
        assert (values != 0.25).all() if fresh else (values == 0.25).all()


def test_a_method_whose_needs_nobody_meets_is_refused():
    own = methods.recipe("social_rl")
    with pytest.raises(ValueError, match="'social_rl' reads process_reward, turn, which no part"):
        check_needs(own, "social_rl", 1)
    check_needs(own, "social_rl", 1, own.experience.writes)


def test_values_are_provided_to_a_method_that_says_how_to_fit_its_critic():
    recipe = methods.recipe("ppo")
    check_needs(recipe, "ppo", 1)
    with pytest.raises(ValueError, match="method 'ppo' reads values, which no part of this run"):
        check_needs(replace(recipe, critic=None), "ppo", 1)


def test_likeliest_tokens_of_now_have_old_log_probs_in_the_first_update_only():
    own = methods.recipe("simko")
    check_needs(own, "simko", 1)
    with pytest.raises(ValueError, match="minibatches and --epochs must be 1 for method 'simko'"):
        check_needs(own, "simko", 2)


def test_the_record_says_which_tokens_were_chosen_and_which_clipped():
    rollouts = batch("float32")
    _, metrics, record = step(moved(), rollouts, fresh=False)
    record = jax.device_get(record)
    mask, ratio, advantage = np.asarray(rollouts.mask), record["ratio"], record["advantage"]
    outside = ((advantage > 0) & (ratio > 1 + CLIP)) | ((advantage < 0) & (ratio < 1 - CLIP))
    np.testing.assert_array_equal(record["clipped"], outside & mask)
    assert 0 < record["clipped"].sum() < mask.sum()
    # A fifth of 25 tokens is drawn among those that are not clipped.
    assert record["chosen"].sum() == 5
    assert not (record["chosen"] & (record["clipped"] | ~mask)).any()
    np.testing.assert_allclose(metrics["chosen_fraction"], 5 / 25, rtol=1e-6)
    np.testing.assert_allclose(metrics["clipped_fraction"], record["clipped"].sum() / 25, rtol=1e-6)


def test_curves_split_the_entropy_by_outcome():
    rollouts = batch("float32")
    _, metrics, record = step(moved(), rollouts)
    entropy, mask = np.asarray(record["entropy"], float), np.asarray(rollouts.mask)
    correct = REWARD > 0.5
    values = {
        "entropy": entropy[mask].mean(),
        "entropy/correct": entropy[correct][mask[correct]].mean(),
        "entropy/incorrect": entropy[~correct][mask[~correct]].mean(),
        "entropy/p10": np.quantile(entropy[mask], 0.1),
        "entropy/p90": np.quantile(entropy[mask], 0.9),
        "low_entropy_fraction": (entropy[mask] < 0.01).mean(),
    }
    for name, value in values.items():
        np.testing.assert_allclose(metrics[name], value, rtol=1e-5)


def test_curves_of_no_token_are_missing():
    rollouts = batch("float32")
    nothing = rollouts.replace(mask=jnp.zeros_like(rollouts.mask))
    _, metrics, _ = step(moved(), nothing)
    for name in ("entropy", "entropy/p50", "entropy/correct", "low_entropy_fraction"):
        assert np.isnan(metrics[name]), name


@pytest.mark.thorough
@pytest.mark.parametrize("micro_batches", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_no_array_over_tokens_and_vocabulary_is_made(micro_batches):
    # More than two tiles of the vocabulary, more than one of the tokens.
    vocabulary, budget = 2 * 2048 + 77, 160
    model = Model(replace(tiny("float32")[0].config, vocab_size=vocabulary))

    def widened(x):
        shape = (ROWS, budget) if x.shape == (ROWS, BUDGET) else x.shape
        return jax.ShapeDtypeStruct(shape, x.dtype)

    def start_of(params):
        return replace(start(), params=params, optimizer_state=OPTIMIZER.init(params))

    program = jax.jit(
        functools.partial(update, model, CUSTOM, OPTIMIZER, fresh=True, micro_batches=micro_batches)
    )
    lowered = program.lower(
        jax.eval_shape(start_of, jax.eval_shape(model.init, jax.random.key(0))),
        jax.tree.map(widened, batch("float32")),
        jax.random.key(0),
    )
    sizes = {
        math.prod(int(number) for number in dimensions.split(","))
        for dimensions in re.findall(r"\b[a-z]+\d+\[([\d,]+)\]", lowered.compile().as_text())
    }
    unembedding, tile = vocabulary * 8, 512 * 2048
    assert unembedding in sizes
    assert max(sizes) == tile < ROWS // micro_batches * budget * vocabulary
