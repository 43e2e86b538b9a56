"""Composition: names, state, needs, gradients that are stopped, errors."""

import golden_vectors as golden
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from clipped_objective import made

from rlvr_jax.experience import overlong_shaping
from rlvr_jax.methods.agents.supo import drop_truncated
from rlvr_jax.methods.baselines.rloo import leave_one_out
from rlvr_jax.methods.entropy.entropy_bonus import adaptive_entropy_bonus
from rlvr_jax.methods.entropy.kl_cov import penalize_high_covariance
from rlvr_jax.objectives import (
    Transform,
    UpdatePlan,
    drop_high_covariance,
    entropy_bonus,
    fixed_length_mean,
    group_normalized,
    group_spread,
    importance_weighted,
    is_chosen,
    is_clipped,
    keep_top_entropy,
    kl_penalty,
    objective,
    part,
    ppo_clip,
    reinforce,
    token_mean,
    within_response,
)
from rlvr_jax.types import replace


@part(init=lambda spec: jnp.zeros((), jnp.int32))
def count_updates() -> Transform:
    """A transform with state."""

    def apply(signals, context, state):
        return signals, state + 1, {}

    return apply


@part
def draw_weight() -> Transform:
    """A transform whose metric shows its key."""

    def apply(signals, context, state):
        return signals, state, {"draw_weight": jax.random.uniform(context.key)}

    return apply


@pytest.mark.thorough
def test_state_is_keyed_by_name_and_survives_an_inserted_transform():
    batch, stats = golden.rollouts("b"), golden.stats("b")
    old = golden.step(made(count_updates()), stats, batch).state
    assert list(old) == ["count_updates"]
    longer = made(keep_top_entropy(0.5), count_updates(), count_updates())
    state = {**longer.init(golden.spec(batch)), **old}
    new = golden.step(longer, stats, batch, state).state
    assert {name: int(value) for name, value in new.items()} == {
        "count_updates": 2,
        "count_updates_2": 1,
    }


def test_parts_of_one_name_have_states_and_streams_of_their_own():
    batch = golden.rollouts("b")
    twice = made(count_updates(), count_updates(), draw_weight(), draw_weight())
    done = golden.step(twice, golden.stats("b"), batch)
    assert set(done.state) == {"count_updates", "count_updates_2"}
    assert done.metrics["draw_weight"] != done.metrics["draw_weight_2/draw_weight"]


@pytest.mark.thorough
def test_random_stream_of_a_part_does_not_move_when_another_is_inserted():
    batch, stats = golden.rollouts("b"), golden.stats("b")
    alone = golden.step(made(draw_weight()), stats, batch).metrics["draw_weight"]
    longer = made(count_updates(), draw_weight())
    assert golden.step(longer, stats, batch).metrics["draw_weight"] == alone


def test_what_is_decided_carries_no_gradient():
    def apply(signals, context, state):
        leaky = dict.fromkeys(("advantage", "weight", "clip_low", "clip_high"), context.stats.logp)
        return replace(signals, **leaky), state, {}

    batch, stats = golden.rollouts("b"), golden.stats("b")
    leaking = made(Transform(apply), surrogate=importance_weighted())

    logp, mask = np.asarray(stats.logp), np.asarray(batch.mask)
    # the loss is -logp · logp · ratio; only the ratio has a slope
    wanted = np.where(mask, -(logp**2) * np.exp(logp - batch.old_logp), 0) / mask.sum()
    golden.assert_agrees(golden.step(leaking, stats, batch).dstats.logp, wanted)


def test_without_old_logp_the_ratio_is_exactly_one_and_the_gradient_that_of_reinforce():
    batch, stats = golden.rollouts("b").replace(old_logp=None), golden.stats("b")
    clipped = golden.step(made(), stats, batch)
    plain = golden.step(made(surrogate=reinforce()), stats, batch)
    assert clipped.metrics["ratio/min"] == clipped.metrics["ratio/max"] == 1
    assert clipped.metrics["ratio/effective_sample_size"] == 1
    golden.assert_agrees(clipped.dstats.logp, plain.dstats.logp)


def test_needs_are_the_union_over_the_parts():
    assert made().reads == {"logp"}
    everything = made(keep_top_entropy(0.5), regularizers=[kl_penalty(0.1)])
    assert everything.reads == {"logp", "entropy", "reference_logp", "batch_statistics"}
    assert made(keep_top_entropy(0.5, within_response)).reads == {"logp", "entropy"}


def test_a_part_that_decides_once_behind_measured_ones_reads_the_whole_batch():
    measured = Transform(lambda *given: given, reads={"entropy"})
    once = Transform(lambda *given: given, once=True)
    assert made(measured, once).reads == {"logp", "entropy", "batch_statistics"}
    assert made(once, measured).reads == {"logp", "entropy"}


def test_a_batch_is_decided_once_by_its_old_log_probs_unless_the_advantage_is_measured():
    def apply(signals, context, state):
        return replace(signals, weight=context.old_logp), state, {}

    batch = golden.rollouts("b")
    weighted = made(Transform(apply, once=True))
    decided = weighted.decide_once(batch, weighted.init(golden.spec(batch)), jax.random.key(0))[0]
    weight = np.where(batch.mask, decided.records["weight"], 0)
    golden.assert_agrees(weight, np.where(batch.mask, batch.old_logp, 0))
    measured = Transform(lambda *given: given, reads={"entropy"})
    parts = dict(surrogate=ppo_clip(0.2, 0.2), aggregation=token_mean())
    assert objective(measured, **parts).decide_once is None


@pytest.mark.parametrize(
    ("low", "high", "eligible"), [(-1.0, 1.0, True), (-1.0, 0.0, False), (0.0, 1.0, False)]
)
def test_a_covariance_at_its_bound_is_not_eligible(low, high, eligible):
    stats = golden.stats("b")
    equal = stats.replace(logp=jnp.full_like(stats.logp, -1.0))  # so every covariance is 0
    dropping = made(drop_high_covariance(0.5, low, high))
    found = golden.step(dropping, equal, golden.rollouts("b")).metrics
    assert (found["eligible_fraction"] > 0) == eligible


def test_an_unknown_need_is_refused_when_the_objective_is_built():
    transform = Transform(lambda *a: a, reads={"entropie"})
    with pytest.raises(ValueError, match=r"reads of test_an_unknown.*closest: entropy.*'entropie'"):
        made(transform)


def test_missing_statistics_and_wrong_shapes_are_named():
    batch, stats, key = golden.rollouts("b"), golden.stats("b"), jax.random.key(0)
    with pytest.raises(ValueError, match=r"stats\.entropy must be given \(keep_top_entropy"):
        made(keep_top_entropy(0.5)).loss(stats.replace(entropy=None), batch, {}, key)
    with pytest.raises(ValueError, match=r"rollouts\.reference_logp must be given \(kl_penalty"):
        penalized = made(regularizers=[kl_penalty(0.1)])
        penalized.loss(stats, batch.replace(reference_logp=None), {}, key)
    with pytest.raises(ValueError, match=r"stats\.logp must begin .*\(12, 9\) .* got \(12, 8\)"):
        made().loss(stats.replace(logp=stats.logp[:, :8]), batch, {}, key)


def test_labels_show_every_part_in_order():
    built = made(drop_high_covariance(0.0075, 1.0, 5.0), regularizers=[kl_penalty(0.04)])
    assert built.labels == (
        "ppo_clip(low=0.2, high=0.2)",
        "group_normalized()",
        "drop_high_covariance(fraction=0.0075, low=1, high=5)",
        "kl_penalty(coefficient=0.04)",
        "token_mean()",
    )


def test_parts_that_cannot_act_under_a_plan_say_so():
    held = made(penalize_high_covariance(0.01, 1.0))
    once = held.remarks(UpdatePlan(updates_per_batch=1, group_size=8))
    assert len(once) == 2
    assert "ppo_clip" in once[0] and "penalize_high_covariance" in once[1]
    assert held.remarks(UpdatePlan(updates_per_batch=4, group_size=8)) == []
    lonely = objective(leave_one_out(), surrogate=reinforce(), aggregation=token_mean())
    assert "group of one" in lonely.remarks(UpdatePlan(1, 1))[0]
    assert "4 updates" in lonely.remarks(UpdatePlan(4, 8))[0]


def test_chosen_tokens_are_those_whose_weight_or_penalty_changed():
    batch, stats = golden.rollouts("b"), golden.stats("b")
    kept = golden.step(
        made(keep_top_entropy(0.25), regularizers=[entropy_bonus(0.1)]), stats, batch
    )
    chosen = is_chosen(kept.signals)
    np.testing.assert_array_equal(chosen, batch.mask & (kept.signals.weight == 0))
    golden.assert_agrees(kept.metrics["chosen_fraction"], np.asarray(chosen)[batch.mask].mean())


def test_tokens_that_the_clip_already_stops_are_not_drawn():
    every = made(drop_high_covariance(1.0, -100.0, 100.0), surrogate=ppo_clip(0.01, 0.01))
    done = golden.step(every, golden.stats("b"), golden.rollouts("b"))
    clipped = np.asarray(is_clipped(done.signals))
    assert clipped.any()
    np.testing.assert_array_equal(is_chosen(done.signals), done.signals.mask & ~clipped)


def test_dropped_groups_leave_the_denominators():
    batch, stats = golden.rollouts("b"), golden.stats("b")
    spread = group_spread(batch.outcome, batch.group)
    kept = batch.replace(mask=batch.mask & (spread > 0)[:, None])
    num_all, num_kept = np.asarray(batch.mask).sum(), np.asarray(kept.mask).sum()
    assert 0 < num_kept < num_all
    whole, part = (golden.step(made(), stats, rows) for rows in (batch, kept))
    # groups of equal rewards have advantage 0, so only the number of tokens differs
    golden.assert_agrees(float(whole.loss) * num_all, float(part.loss) * num_kept)


def test_the_share_of_truncated_rollouts_is_reported():
    batch = golden.rollouts("b")
    truncated = np.arange(len(batch.group)) % 3 == 0
    batch = batch.replace(truncated=jnp.asarray(truncated))
    metrics = golden.step(made(drop_truncated()), golden.stats("b"), batch).metrics
    golden.assert_agrees(metrics["dropped_rollouts_fraction"], truncated.mean())


@pytest.mark.parametrize(
    "build, message",
    [
        (lambda: keep_top_entropy(0.0), r"keep_top_entropy: fraction must be in \(0, 1\], got 0"),
        (lambda: drop_high_covariance(2.0, 1.0, 5.0), "drop_high_covariance: fraction .* got 2"),
        (lambda: drop_high_covariance(0.1, 5.0, 1.0), "low must be below high 1.0, got 5.0"),
        (lambda: drop_high_covariance(0.1, 5.0, 5.0), "low must be below high 5.0, got 5.0"),
        (
            lambda: penalize_high_covariance(-1.0, 1.0),
            "penalize_high_covariance: fraction .* got -1",
        ),
        (lambda: kl_penalty(-0.1), "kl_penalty: coefficient must be at least 0, got -0.1"),
        (lambda: group_normalized(0.0), "group_normalized: epsilon must be positive, got 0"),
        (lambda: fixed_length_mean(0), "fixed_length_mean: length must be at least 1, got 0"),
        (lambda: overlong_shaping(8, 9), r"cache_length must be in \(0, max_length 8\], got 9"),
        (lambda: adaptive_entropy_bonus(1.0, 0.0), "adaptive_entropy_bonus: step .* got 0"),
        (lambda: adaptive_entropy_bonus(1.0, 0.1, initial=2.0), r"initial must be in \[0.0, 1.0\]"),
    ],
)
def test_bad_arguments_are_refused_when_built(build, message):
    with pytest.raises(ValueError, match=message):
        build()
