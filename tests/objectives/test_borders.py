"""What users get wrong when they compose a loss or call one is said in a sentence."""

import golden_vectors as golden
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax import methods
from rlvr_jax.methods.agents.supo import drop_truncated
from rlvr_jax.methods.entropy.kl_cov import penalize_high_covariance
from rlvr_jax.methods.entropy.siren import anchored_entropy
from rlvr_jax.methods.judges.cgpo import constrained_reward
from rlvr_jax.objectives import (
    Spec,
    Transform,
    group_normalized,
    is_chosen,
    keep_top_entropy,
    objective,
    ppo_clip,
    token_mean,
)
from rlvr_jax.types import Recipe, Rollouts, TokenStats, replace

KEY = jax.random.key(0)


def composed(**changes):
    parts = dict(advantage=group_normalized(), surrogate=ppo_clip(0.2, 0.2))
    return objective(**{**parts, "aggregation": token_mean(), **changes})


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"advantage": group_normalized},
            r"advantage must be .*has to be called: group_normalized",
        ),
        (
            {"aggregation": token_mean},
            "aggregation must be of kind Aggregation, got token_mean",
        ),
        (
            {"surrogate": group_normalized()},
            r"surrogate must be of kind Surrogate, got group_normalized\(",
        ),
        (
            {"transforms": keep_top_entropy(0.2)},
            "transforms must be a list or tuple, got keep_top_entropy",
        ),
        ({"transforms": [keep_top_entropy]}, "each of transforms must be .*be called: keep_top_en"),
    ],
)
def test_what_is_no_part_is_refused_where_the_objective_is_made(changes, sentence):
    with pytest.raises(ValueError, match=sentence):
        composed(**changes)


def batch_of(**changes):
    batch, stats = golden.rollouts("b"), golden.stats("b")
    return stats, batch.replace(**changes)


@pytest.mark.parametrize(
    ("field", "change", "sentence"),
    [
        (
            "reward",
            lambda x: x[:, None],
            r"rollouts.reward must have the shape \[.*\], got \[.*, 1",
        ),
        (
            "reward",
            lambda x: np.append(x, x[:1]),
            r"rollouts.reward must have the shape \[\d+\] as",
        ),
        ("old_logp", lambda x: x[:, 1:], r"rollouts.old_logp must have the shape \[\d+, \d+\] as"),
        (
            "mask",
            lambda x: x.astype(np.float32),
            r"rollouts.mask must be bool \[B, T\], got float32",
        ),
        ("mask", lambda x: x[0], r"rollouts.mask must be bool \[B, T\], got bool \[\d+\]"),
    ],
)
def test_arrays_that_do_not_fit_the_mask_are_named(field, change, sentence):
    stats, batch = batch_of()
    incorrect = batch.replace(**{field: change(np.asarray(batch.get(field)))})
    with pytest.raises(ValueError, match=sentence):
        composed().loss(stats, incorrect, {}, KEY)


def test_a_statistic_of_another_shape_is_named():
    stats, batch = batch_of()
    with pytest.raises(ValueError, match=r"stats.entropy must have the shape \[\d+, \d+\] as"):
        composed().loss(stats.replace(entropy=stats.entropy[:, :2]), batch, {}, KEY)


@pytest.mark.thorough
def test_a_missing_key_or_state_is_named():
    stats, batch = batch_of()
    with pytest.raises(ValueError, match=r"key must be a key of jax\.random, got None"):
        composed().loss(stats, batch, {}, None)
    anchored = composed(regularizers=[anchored_entropy(0.1)])
    measured = stats.replace(nucleus_entropy=stats.entropy)
    with pytest.raises(ValueError, match=r"with an entry of anchored_entropy, got \[\]"):
        anchored.loss(measured, batch, {}, KEY)
    rows, width = batch.mask.shape
    anchored.loss(measured, batch, anchored.init(Spec(4, rows, width)), KEY)


def mine(apply):
    return Transform(apply)


def test_what_a_part_answers_is_checked():
    stats, batch = batch_of()
    two = mine(lambda signals, context, state: (signals, state))
    with pytest.raises(
        ValueError,
        match=r"test_what_a_part_answers_is_checked: apply must return \(signals, state, metrics",
    ):
        composed(transforms=[two]).loss(stats, batch, {}, KEY)
    flat = mine(
        lambda signals, context, state: (replace(signals, weight=signals.weight[0]), state, {})
    )
    with pytest.raises(
        ValueError,
        match=r"test_what_a_part_answers_is_checked: weight of the signals must have the shape \(",
    ):
        composed(transforms=[flat]).loss(stats, batch, {}, KEY)


def test_a_part_that_reads_what_it_did_not_ask_for_is_told_so():
    stats, batch = batch_of()
    greedy = mine(lambda signals, context, state: (signals, state, {"x": -context.stats.entropy}))
    with pytest.raises(TypeError) as raised:
        composed(transforms=[greedy]).loss(stats.replace(entropy=None), batch, {}, KEY)
    assert raised.value.__notes__ == [
        "in test_a_part_that_reads_what_it_did_not_ask_for_is_told_so: statistics and records"
        " that it does not name in `reads` may be None"
    ]


def test_a_method_that_makes_no_recipe_is_refused(tmp_path, monkeypatch):
    code = (
        "from rlvr_jax import methods\n\ndef bare():\n    return methods.recipe('dapo').objective\n"
    )
    (tmp_path / "no_recipes.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"'no_recipes:bare' must return a Recipe.*got Objective"):
        methods.recipe("no_recipes:bare")


def chosen_by(own, batch, stats):
    rows, width = batch.mask.shape
    state = own.objective.init(Spec(4, rows, width))
    return np.asarray(is_chosen(own.objective.signals(stats, batch, state, KEY)))


def test_kl_cov_says_which_tokens_it_holds_before_any_has_moved():
    stats, batch = batch_of()
    batch = batch.replace(old_logp=jnp.asarray(stats.logp))
    own = Recipe(composed(transforms=[penalize_high_covariance(0.25, 1.0)]))
    chosen = chosen_by(own, batch, stats)
    assert chosen.sum() == np.asarray(batch.mask).sum() // 4 and not chosen[~batch.mask].any()


def test_what_regularizers_single_out_and_what_leaves_the_mask_is_chosen():
    stats, batch = batch_of()
    stats = stats.replace(nucleus_entropy=stats.entropy)
    peaks = chosen_by(Recipe(composed(regularizers=[anchored_entropy(0.1)])), batch, stats)
    assert 0 < peaks.sum() < batch.mask.sum()
    truncated = np.arange(len(batch.mask)) % 2 == 1
    batch = batch.replace(truncated=truncated)
    dropped = chosen_by(Recipe(composed(transforms=[drop_truncated()])), batch, stats)
    np.testing.assert_array_equal(dropped, batch.mask & truncated[:, None])


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
@pytest.mark.parametrize("name", ["grpo", "forking_tokens", "kl_cov"])
def test_statistics_of_half_precision_are_computed_with_in_float32(name, dtype):
    stats, batch = batch_of()
    low = jax.tree.map(lambda x: x.astype(dtype) if x.dtype == np.float64 else x, stats)
    batch = batch.replace(reference_logp=batch.old_logp)
    own = methods.recipe(name).objective
    loss, _ = own.loss(low, batch, own.init(Spec(4, *batch.mask.shape)), KEY)
    assert loss.dtype == jnp.float32 and np.isfinite(loss)


@pytest.mark.parametrize("dtype", [bool, np.int32])
def test_verdicts_are_rewards_as_numbers_are(dtype):
    stats, batch = batch_of()
    wanted = composed().loss(stats, batch, {}, KEY)[0]
    assert set(np.unique(batch.reward)) == {0, 1}
    whole = batch.replace(reward=np.asarray(batch.reward).astype(dtype))
    assert composed().loss(stats, whole, {}, KEY)[0] == wanted


def test_who_reads_what_the_sampler_did_not_record_is_told_so():
    stats, batch = batch_of()
    rows = Rollouts.of_responses(batch.tokens, batch.mask, batch.reward, batch.group)
    assert rows.entropy is None and rows.behaviour_logp is None
    composed().loss(stats, rows, {}, KEY)
    for name, field, reader in (
        ("rl_zvp", "entropy", "credit_unanimous_groups"),
        ("rollout_correction", "behaviour_logp", "truncate_importance"),
    ):
        with pytest.raises(ValueError, match=rf"rollouts.{field} must be given \({reader}\("):
            methods.recipe(name).objective.loss(stats, rows, {}, KEY)


def _reading(name):
    """Methods that read a record."""
    for method in methods.names():
        try:
            recipe = methods.recipe(method)
        except (TypeError, ValueError):  # arguments without defaults
            continue
        if name in recipe.objective.reads:
            yield method


@pytest.mark.parametrize("name", [*_reading("behaviour_logp")])
def test_no_method_that_corrects_the_sampler_trains_without_its_log_probs(name):
    objective = methods.recipe(name).objective
    stats, batch = batch_of()
    rows = batch.replace(behaviour_logp=None)
    with pytest.raises(ValueError, match=r"rollouts.behaviour_logp must be given \(\w+\("):
        objective.loss(stats, rows, {}, KEY)


def test_another_number_of_likeliest_tokens_than_was_asked_for_is_named():
    stats, batch = batch_of()
    own = methods.recipe("simko", top_k=8).objective
    three = np.zeros((*batch.mask.shape, 3))
    stats = stats.replace(topk_logp=three, topk_ids=three.astype(np.int32))
    batch = batch.replace(old_topk_logp=three)
    with pytest.raises(
        ValueError, match=r"last axis of stats.topk_logp must be 8 for smooth_ratio"
    ):
        own.loss(stats, batch, {}, KEY)


@pytest.mark.parametrize("judges", [(), (7,), (-1,)])
def test_a_judge_that_is_no_column_is_refused(judges):
    _, batch = batch_of()
    batch = batch.replace(component_rewards=np.ones((len(batch.reward), 3)))
    with pytest.raises(ValueError, match="judges must be among the 3 columns"):
        constrained_reward(batch, judges)


@pytest.mark.thorough
def test_a_batch_that_gives_no_number_leaves_the_state_alone():
    stats, batch = batch_of()
    batch = batch.replace(reference_logp=batch.old_logp)
    for name in ("gdro", "safe"):
        own = methods.recipe(name).objective
        state = own.init(Spec(4, *batch.mask.shape))
        _, (after, _) = own.loss(stats, batch, state, KEY)
        broken = batch.replace(reward=np.where(np.arange(len(batch.reward)), batch.reward, np.nan))
        loss, (same, _) = own.loss(stats, broken, after, KEY)
        assert np.isnan(loss)
        jax.tree.map(np.testing.assert_array_equal, same, after)


def test_what_is_decided_of_a_batch_that_is_no_number_is_not_remembered():
    _, batch = batch_of()
    own = methods.recipe("gdro", kl_coefficient=0.0).objective
    state = own.init(Spec(4, *batch.mask.shape))
    broken = np.where(np.arange(len(batch.outcome)), batch.outcome, np.nan)
    _, same, _ = own.decide_once(batch.replace(outcome=broken), state, KEY)
    jax.tree.map(np.testing.assert_array_equal, same, state)


def test_an_entropy_that_is_no_number_does_not_stay_in_the_past():
    stats, batch = batch_of()
    own = methods.recipe("epo").objective
    state = own.init(Spec(4, *batch.mask.shape))
    entropy = np.asarray(batch.entropy).copy()
    row = np.flatnonzero(np.asarray(batch.records["env_step"]) == 2)[0]
    entropy[row, np.flatnonzero(np.asarray(batch.mask)[row])[0]] = np.nan
    _, (state, _) = own.loss(stats, batch.replace(entropy=entropy), state, KEY)
    past = state["banded_entropy_bonus"]
    assert np.isfinite(past.total).all()
    np.testing.assert_array_equal(past.count[:4], [1, 1, 0, 1])


def test_a_prompt_without_a_length_is_refused():
    tokens, mask = np.zeros((2, 3), int), np.ones((2, 3), bool)
    with pytest.raises(ValueError, match="prompt_length must be given with prompt_logp"):
        Rollouts.of_responses(tokens, mask, [0, 1], [0, 0], prompt_logp=np.zeros((2, 4)))


def test_an_empty_batch_has_a_loss_of_0():
    nothing = np.zeros((0, 4))
    none = Rollouts.of_responses(nothing.astype(int), nothing > 0, [], np.zeros(0, int))
    loss, _ = composed().loss(TokenStats(logp=jnp.asarray(nothing)), none, {}, KEY)
    assert loss == 0


@pytest.mark.parametrize(
    ("name", "changes", "sentence"),
    [
        ("gspo", {"epsilon": np.inf}, "epsilon must be finite, got inf"),
        ("kl_cov", {"penalty_coefficient": np.inf}, "coefficient must be finite, got inf"),
        ("verl_effective_rank", {"stride": 1.5}, "stride must be a whole number, got 1.5"),
        ("hpt", {"solved": np.nan}, "solved must be a whole number, got nan"),
        ("epo", {"max_steps": 2.5}, "steps must be a whole number, got 2.5"),
        ("siren", {"anchor_updates": 1.5}, "anchor_updates must be a whole number, got 1.5"),
        ("ngrpo", {"num_virtual": 1.5}, "num_virtual must be a whole number, got 1.5"),
        ("laser", {"scale": 0.0}, "scale must be positive, got 0"),
        ("gtpo", {"entropy_threshold": np.nan}, "threshold must be positive, got nan"),
        (
            "reinforce_plus_plus",
            {"discount": 0.5, "group_baseline": True},
            "discount must be 1 with group_baseline, got 0.5",
        ),
    ],
)
def test_numbers_that_make_no_sense_are_refused(name, changes, sentence):
    with pytest.raises(ValueError, match=sentence):
        methods.recipe(name, **changes)
