"""Updates of a policy: nothing is learned from nothing, and which old log-probs are compared."""

import functools
import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from tiny_batch import BUDGET, REWARD, ROWS, batch, tiny

from rlvr_jax import methods, objectives
from rlvr_jax.methods.entropy.entropy_bonus import adaptive_entropy_bonus
from rlvr_jax.objectives import Spec
from rlvr_jax.policy import Model
from rlvr_jax.training import TrainState, update
from rlvr_jax.training.update import check_needs
from rlvr_jax.types import replace

pytestmark = pytest.mark.usefixtures("usual_promotion")


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
