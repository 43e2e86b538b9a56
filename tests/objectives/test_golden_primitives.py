"""Aggregations, divergences, shaping and the clip agree with their golden vectors."""

import golden_vectors as golden
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from golden_vectors import assert_agrees

from rlvr_jax import objectives
from rlvr_jax.objectives import (
    Transform,
    adaptive_entropy_bonus,
    drop_truncated,
    entropy_bonus,
    fixed_length_mean,
    fixed_length_sum,
    masked_mean,
    objective,
    overlong_penalty,
    overlong_shaping,
    plain_outcome,
    ppo_clip,
    rollout_mean_token_mean,
    rollout_mean_token_sum,
    row_mean_token_mean,
    signed_outcome,
    token_mean,
)
from rlvr_jax.types import Recipe, Signals, replace

all_cases = pytest.mark.parametrize("case", golden.CASES)

AGGREGATIONS = {
    "token_mean": lambda width: token_mean(),
    "seq_mean_token_sum": lambda width: rollout_mean_token_sum(),
    "seq_mean_token_mean": lambda width: rollout_mean_token_mean(),
    "seq_mean_token_mean_all": lambda width: row_mean_token_mean(),
    "dr_grpo": fixed_length_mean,
    "seq_sum_norm_verl": fixed_length_sum,
}
DIVERGENCES = {
    "k1": "k1",
    "k2": "k2",
    "k3": "k3",
    "abs": "absolute",
    "k3_is": "k3_importance",
    "k3pp": "k3_plus",
}


@pytest.mark.parametrize("name", AGGREGATIONS)
@pytest.mark.parametrize("hole", ["", "_hole"])
@all_cases
def test_aggregation_and_its_weights_agree_with_the_reference(name, hole, case):
    expected, mask = golden.reference("aggregation", case), golden.rollouts(case).mask
    if hole:
        mask = mask.at[golden.hyperparameters("aggregation")["empty_row"]].set(False)
    aggregation = AGGREGATIONS[name](mask.shape[1])
    values = jnp.asarray(expected["token_loss"])
    value, weights = jax.value_and_grad(aggregation)(values, mask)
    assert_agrees(value, expected[name + hole])
    assert_agrees(weights, expected[f"w_{name}{hole}"])


@pytest.mark.parametrize("name", DIVERGENCES)
@all_cases
def test_divergence_and_its_slope_agree_with_the_reference(name, case):
    expected, batch = golden.reference("kl_estimators", case), golden.rollouts(case)
    estimator = getattr(objectives, DIVERGENCES[name])

    def total(logp):
        values = estimator(logp, batch.reference_logp, batch.old_logp)
        values = jnp.where(batch.mask, values, 0)
        return values.sum(), values

    slope, values = jax.grad(total, has_aux=True)(golden.stats(case).logp)
    assert_agrees(values, expected[name])
    assert_agrees(slope, expected[f"dlogp_{name}"])


@pytest.mark.parametrize("name", ["k2", "k3", "k3_is"])
@all_cases
def test_divergence_as_a_loss_agrees_with_the_reference(name, case):
    expected = golden.reference("kl_estimators", case)
    silent = Transform(lambda spec: (), lambda s, c, state: (s, state, {}), frozenset(), "silent()")
    penalty = objectives.kl_penalty(1.0, getattr(objectives, DIVERGENCES[name]))
    only_kl = objective(
        silent, surrogate=ppo_clip(0.2, 0.2), regularizers=[penalty], aggregation=token_mean()
    )
    loss, dlogits, *_ = golden.evaluate(Recipe(only_kl), case)
    assert_agrees(loss, expected[f"loss_{name}"])
    assert_agrees(dlogits, expected[f"dlogits_{name}"])


@all_cases
def test_overlong_shaping_agrees_with_the_reference(case):
    expected, batch = golden.reference("overlong_shaping", case), golden.rollouts(case)
    width, cache = batch.mask.shape[1], golden.hyperparameters("overlong_shaping")["cache"]
    assert_agrees(overlong_penalty(batch.length, width, cache), expected["penalty"])
    assert_agrees(overlong_penalty(batch.length + 2, width, cache), expected["penalty_beyond"])
    for base, name in ((plain_outcome, "shaped"), (signed_outcome, "shaped_pm1")):
        assert_agrees(overlong_shaping(width, cache, base=base)(batch), expected[name])


@all_cases
def test_truncated_rollouts_are_filtered_as_in_the_reference(case):
    expected, batch = golden.reference("overlong_shaping", case), golden.rollouts(case)
    signals = Signals.neutral(batch.mask, jnp.float64)
    context = objectives.Context(golden.stats(case), batch, batch.old_logp, jax.random.key(0))
    signals, _, metrics = drop_truncated().apply(signals, context, ())
    np.testing.assert_array_equal(signals.mask, expected["filter_mask"].astype(bool))
    assert_agrees(metrics["dropped_rollouts_share"], 1 - expected["filter_keep"].mean())


@all_cases
def test_clipped_loss_agrees_with_the_reference_on_given_advantages(case):
    expected = golden.reference("ppo", case)

    def apply(signals, context, state):
        del context
        return replace(signals, advantage=jnp.asarray(expected["advantages"])), state, {}

    given = Transform(lambda spec: (), apply, frozenset(), "given()")
    clipped = objective(given, surrogate=ppo_clip(0.2, 0.2), aggregation=token_mean())
    loss, dlogits, *_ = golden.evaluate(Recipe(clipped), case)
    assert_agrees(loss, expected["loss"])
    assert_agrees(dlogits, expected["dlogits"])


@all_cases
def test_gradient_of_the_mean_entropy_agrees_with_the_reference(case):
    silent = Transform(lambda spec: (), lambda s, c, state: (s, state, {}), frozenset(), "silent()")
    bonus = objective(
        silent,
        surrogate=ppo_clip(0.2, 0.2),
        regularizers=[entropy_bonus(-1.0)],
        aggregation=token_mean(),
    )
    dlogits = golden.evaluate(Recipe(bonus), case)[1]
    assert_agrees(dlogits, golden.reference("entropy_bonus", case)["dlogits_entropy"])


@all_cases
def test_adaptive_entropy_coefficient_agrees_with_the_reference(case):
    expected, batch = golden.reference("entropy_bonus", case), golden.rollouts(case)
    controller = adaptive_entropy_bonus(target=1.7, step=0.005)
    state = controller.init(golden.spec(batch))
    entropy = golden.stats(case).entropy
    used, coefficients = [], []
    for row in range(batch.mask.shape[0]):
        one = batch.mask[row : row + 1]
        stats = objectives.Context(
            golden.TokenStats(entropy=entropy[row : row + 1]), batch, batch.old_logp, None
        )
        signals = Signals.neutral(one, jnp.float64)
        signals, state, metrics = controller.apply(signals, stats, state)
        used.append(metrics["entropy_coefficient"])
        coefficients.append(state.coefficient)
        assert_agrees(masked_mean(entropy[row : row + 1], one), expected["step_entropy"][row])
    assert_agrees(jnp.stack(used), expected["adaptive_used"])
    assert_agrees(jnp.stack(coefficients), expected["adaptive_coef"])
