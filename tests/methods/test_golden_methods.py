"""Every method agrees with its golden vectors: loss, gradient, and what lies between."""

import functools

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np
import pytest
from golden_vectors import assert_agrees

from rlvr_jax.methods import names, recipe
from rlvr_jax.objectives import (
    drop_high_covariance,
    group_mean,
    group_normalized,
    group_others_mean,
    group_std,
    is_clipped,
    k3,
    leave_one_out,
    masked_mean,
    masked_quantile,
    objective,
    overlong_penalty,
    ppo_clip,
    product_ratio,
    rollout_mean_token_mean,
    sequence_ratio,
    token_covariance,
    token_mean,
)
from rlvr_jax.types import Recipe

both_rewards = pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])
all_cases = pytest.mark.parametrize("case", golden.CASES)


def first_in_row_major_order(eligible, k, key, rollout_id):
    """Stands for the random draw of the reference."""
    del key, rollout_id
    order = jnp.cumsum(eligible.ravel().astype(jnp.int32)).reshape(eligible.shape)
    return eligible & (order <= k)


@functools.cache
def clip_cov_with_first(fraction=0.05, choice=first_in_row_major_order):
    return Recipe(
        objective(
            advantage=group_normalized(),
            transforms=[drop_high_covariance(fraction, low=1.0, high=5.0, choice=choice)],
            surrogate=ppo_clip(low=1.0, high=1.0),
            aggregation=token_mean(),
        )
    )


@functools.cache
def made(name, case):
    """The recipe with the hyperparameters of the vectors where they are not the defaults."""
    width = golden.inputs(case)["mask"].shape[1]
    if name == "clip_cov":
        return clip_cov_with_first()
    changed = {
        "dapo": {"max_length": width, "cache_length": 5},
        "dr_grpo": {"max_length": width},
        "kl_cov": {"fraction": 0.05},
    }
    return recipe(name, **changed.get(name, {}))


@functools.cache
def clipped_rloo():
    """The reading of TRL: the ratio of the whole response is clipped."""
    return Recipe(
        objective(
            advantage=leave_one_out(),
            surrogate=ppo_clip(0.2, 0.2, ratio=product_ratio),
            aggregation=rollout_mean_token_mean(),
        )
    )


def expected(slug, case, soft):
    """Outputs for the chosen rewards; those that depend on none are there under both."""
    outputs = golden.reference(slug, case)
    if not soft:
        return outputs
    return {name: outputs.get(f"{name}_soft", value) for name, value in outputs.items()}


def off_is_zero(values, mask):
    return np.where(mask, values, 0)


@pytest.mark.parametrize("name", names())
@all_cases
@both_rewards
def test_loss_gradient_and_advantages_agree_with_the_reference(name, case, soft):
    wanted = expected(name, case, soft)
    loss, dlogits, *_ = golden.evaluate(made(name, case), case, soft)
    assert_agrees(loss, wanted["loss"])
    assert_agrees(dlogits, wanted["dlogits"])
    assert_agrees(golden.signals(made(name, case), case, soft).advantage, wanted["advantages"])


@all_cases
@both_rewards
def test_token_losses_agree_with_the_reference(case, soft):
    for name in ("dr_grpo", "dapo", "gspo"):
        signals = golden.signals(made(name, case), case, soft)
        low, high = 1 - signals.clip_low, 1 + signals.clip_high
        clipped = np.clip(signals.ratio, low, high)
        loss = np.maximum(-signals.advantage * signals.ratio, -signals.advantage * clipped)
        wanted = expected(name, case, soft)["token_loss"]
        assert_agrees(off_is_zero(loss, signals.mask), wanted)


@all_cases
@both_rewards
def test_group_statistics_and_kl_of_grpo_agree(case, soft):
    wanted, batch = expected("grpo", case, soft), golden.rollouts(case, soft)
    assert_agrees(group_mean(batch.reward, batch.group), wanted["group_mean"])
    assert_agrees(group_std(batch.reward, batch.group), wanted["group_std"])
    kl = k3(golden.stats(case).logp, batch.reference_logp, batch.old_logp)
    assert_agrees(off_is_zero(kl, batch.mask), wanted["kl"])
    metrics = golden.evaluate(made("grpo", case), case, soft)[2]
    assert_agrees(metrics["kl_penalty/k3"], wanted["kl"].sum() / np.asarray(batch.mask).sum())


@all_cases
@both_rewards
def test_shaped_reward_and_kept_groups_of_dapo_agree(case, soft):
    wanted, batch = expected("dapo", case, soft), golden.rollouts(case, soft)
    dapo = made("dapo", case)
    assert_agrees(dapo.reward(batch), wanted["shaped"])
    assert_agrees(overlong_penalty(batch.length, batch.mask.shape[1], 5), wanted["penalty"])
    keep = dapo.selection.keep(batch.outcome, batch.group)
    np.testing.assert_array_equal(keep, wanted["keep"].astype(bool))


@all_cases
@both_rewards
def test_baseline_of_rloo_agrees(case, soft):
    wanted, batch = expected("rloo", case, soft), golden.rollouts(case, soft)
    assert_agrees(group_others_mean(batch.reward, batch.group), wanted["baseline"])


@all_cases
@both_rewards
def test_clipping_the_ratio_of_whole_responses_is_the_other_reading_of_rloo(case, soft):
    wanted = expected("rloo", case, soft)
    clipped = clipped_rloo()
    loss, dlogits, *_ = golden.evaluate(clipped, case, soft)
    assert_agrees(loss, wanted["loss_clip"])
    assert_agrees(dlogits, wanted["dlogits_clip"])
    ratio = golden.signals(clipped, case, soft).ratio[:, 0]
    assert_agrees(ratio, wanted["seq_ratio"])


@all_cases
@both_rewards
def test_both_forms_of_gspo_are_one_loss(case, soft):
    wanted, batch = expected("gspo", case, soft), golden.rollouts(case, soft)
    loss, dlogits, *_ = golden.evaluate(made("gspo", case), case, soft)
    assert_agrees(loss, wanted["loss_seq"])
    assert_agrees(dlogits, wanted["dlogits_seq"])
    ratio = sequence_ratio(golden.stats(case).logp, batch.old_logp, batch.mask)[:, 0]
    assert_agrees(ratio, wanted["seq_ratio"])
    assert_agrees(jnp.log(ratio), wanted["log_seq_ratio"])


@all_cases
@both_rewards
def test_entropy_and_parts_of_the_entropy_bonus_agree(case, soft):
    wanted, batch = expected("entropy_bonus", case, soft), golden.rollouts(case, soft)
    entropy = off_is_zero(golden.stats(case).entropy, batch.mask)
    assert_agrees(entropy, wanted["entropy"])
    assert_agrees(masked_mean(golden.stats(case).entropy, batch.mask), wanted["entropy_mean"])
    metrics = golden.evaluate(made("entropy_bonus", case), case, soft)[2]
    assert_agrees(metrics["kl_penalty/k3"], wanted["kl_mean"])
    loss = golden.evaluate(made("entropy_bonus", case), case, soft)[0]
    terms = 0.001 * metrics["kl_penalty/k3"] - 0.001 * wanted["entropy_mean"]
    assert_agrees(loss - terms, wanted["pg_loss"])


@all_cases
@both_rewards
def test_covariance_and_eligible_tokens_of_clip_cov_agree(case, soft):
    wanted, batch = expected("clip_cov", case, soft), golden.rollouts(case, soft)
    signals = golden.signals(made("clip_cov", case), case, soft)
    covariance = token_covariance(signals.advantage, golden.stats(case).logp, batch.mask)
    assert_agrees(covariance, wanted["cov"])
    np.testing.assert_array_equal(is_clipped(signals), wanted["already_clipped"].astype(bool))
    np.testing.assert_array_equal(
        batch.mask & (signals.weight == 0), wanted["picked_first"].astype(bool)
    )
    count = np.asarray(batch.mask).sum()
    metrics = golden.evaluate(made("clip_cov", case), case, soft)[2]
    assert_agrees(metrics["eligible_share"], wanted["n_eligible"] / count)
    picked = min(wanted["n_pick"], wanted["n_eligible"])
    assert_agrees(metrics["chosen_share"], picked / count)
    assert_agrees(metrics["covariance"], wanted["cov"].sum() / count)
    assert_agrees(metrics["clipped_share"], wanted["already_clipped"].sum() / count)


def test_dropping_no_or_every_eligible_token_of_clip_cov_agrees():
    none = clip_cov_with_first(choice=lambda eligible, *_: jnp.zeros_like(eligible))
    every = clip_cov_with_first(choice=lambda eligible, *_: eligible)
    for soft in (False, True):
        wanted = expected("clip_cov", "b", soft)
        assert_agrees(golden.evaluate(none, "b", soft)[0], wanted["loss_none_picked"])
        assert_agrees(golden.evaluate(every, "b", soft)[0], wanted["loss_all_eligible"])


@all_cases
@both_rewards
def test_held_tokens_of_kl_cov_agree(case, soft):
    wanted, batch = expected("kl_cov", case, soft), golden.rollouts(case, soft)
    signals = golden.signals(made("kl_cov", case), case, soft)
    covariance = token_covariance(signals.advantage, golden.stats(case).logp, batch.mask)
    assert_agrees(covariance, wanted["cov"])
    np.testing.assert_array_equal(signals.penalty != 0, wanted["selected"].astype(bool))
    loss = -signals.advantage * signals.ratio + signals.penalty
    assert_agrees(off_is_zero(loss, batch.mask), wanted["token_loss"])
    metrics = golden.evaluate(made("kl_cov", case), case, soft)[2]
    assert_agrees(metrics["chosen_share"], wanted["n_pick"] / np.asarray(batch.mask).sum())


@all_cases
def test_threshold_and_kept_tokens_of_forking_tokens_agree(case):
    wanted, batch = golden.reference("forking_tokens", case), golden.rollouts(case)
    entropy = golden.stats(case).entropy
    assert_agrees(masked_quantile(entropy, batch.mask, 1 - 0.2), wanted["threshold"])
    signals = golden.signals(made("forking_tokens", case), case)
    keep = batch.mask & (signals.weight == 1)
    np.testing.assert_array_equal(keep, wanted["keep"].astype(bool))
    metrics = golden.evaluate(made("forking_tokens", case), case)[2]
    assert_agrees(metrics["entropy_threshold"], wanted["threshold"])
    assert_agrees(metrics["kept_fraction"], wanted["keep"].sum() / np.asarray(batch.mask).sum())
