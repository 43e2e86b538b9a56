"""What every method must hold, for whatever stands in the folder."""

import functools

import golden_vectors as golden
import jax
import numpy as np
import pytest
from compiling import compilations
from everyday import everyday
from golden_vectors import array, assert_agrees
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from rlvr_jax.methods import method, names, recipe, themes
from rlvr_jax.methods.exploration.passk_advantage import subset_normalized
from rlvr_jax.types import Method, replace

# Compiled in the fast set: between them they use every kind of part. The others are slow.
FAST = {
    "clip_cov",
    "dapo",
    "entropy_bonus",
    "forking_tokens",
    "grpo",
    "gspo",
    "kl_cov",
    "passk_advantage",
    "rollout_correction",
    "siren",
}
every_method = pytest.mark.parametrize("name", everyday(names(), *FAST))
RANDOM = {"clip_cov", "spear"}
# Compare rollouts of the whole batch before it is split into updates.
ONCE = (
    *("d3s", "empg", "entropy_dynamics", "gpg", "ppl_position_shaping", "ppo"),
    *("reinforce_plus_plus", "spae", "ucas"),
)
# Compare rollouts by their old statistics.
FROM_OLD = ("entropy_dynamics", "ppl_position_shaping", "reinforce_plus_plus", "seed_grpo", "ucas")
# Read rewards of 0 and 1 only.
BINARY = {"nsr", "passk_advantage"}
# What is not 0 by the definition of the method, because it compares with something else than the
# group: a critic, the batch, a virtual rollout, the policy's own confidence, a supervised target.
OWN_BASELINE = {
    *("dcpo", "empg", "f_dpg", "gtpo", "hybrid_npg", "ma_rlhf", "ngrpo", "noisy_reward_correction"),
    *("nsr", "pacs", "ppo", "progrpo", "rapid", "reinforce_plus_plus", "rl_zvp", "safe"),
    *("cgpo", "reverse_curriculum", "social_rl", "spae", "t_ppo", "ucas"),
    *("deepsearch", "designing_rewards", "gen_prm_thoughts", "heimdall", "meta_policy", "opd"),
    *("retool", "rlfr", "rlmec", "rlsp"),
}
# A stage estimates the advantage, before these tests change groups or rewards.
BRINGS_ADVANTAGE = {"rorecomp", "think_rm"}
NOT_ZERO_ALONE = {
    *OWN_BASELINE,
    *BRINGS_ADVANTAGE,
    *("absolute_zero", "calibrl", "hpt", "reinforce", "ssp"),
}
NOT_ZERO_WHEN_EQUAL = {
    *OWN_BASELINE,
    *BRINGS_ADVANTAGE,
    *("ares", "copg", "gdpo", "intrinsic_rewards", "laser"),
}
# Read supervised rows and nothing on the mask; here the right ones are supervised.
IMITATES = {
    *("bfs_prover_v2", "critique_ft", "expert_iteration", "intervention_training", "rstar_math"),
    "stp",
}
# Weights or advantages made of the current log-probs and held constant: the gradient that the paper
# gives is not the slope of the number that is shown.
NOT_THE_SLOPE = {
    *("ace", "aepo_agentic", "cgpo", "cispo", "copg", "f_dpg", "gtpo", "oblr_po", "rapid", "rpg"),
    *("g2rpo_a", "guide", "opd", "rl_plus", "rlmec", "simko", "steer"),
}
# Ratios of other log-probs than those of the sampled tokens, or of none.
OTHER_RATIO = {
    *("ampo", "expert_iteration", "guide", "luffy_mixed", "prerl", "rgr_grpo", "rl_plus", "rlmec"),
    *("rstar_math", "scope", "soft_grpo"),
}
# A verifier of theirs grades the texts, which the record has not.
READS_TEXTS = {"affectgpt_r1", "rewardmap"}
# Divide by all rows that were drawn, by their definition.
OVER_ALL_ROWS = {"capo_curvature", "dr_grpo", "gmpo", "rose", "siren"}
CASE = "b"
FLOAT32 = 1e-5  # float32, sums of at most some hundred terms
# The same numbers summed in another order.
SPLIT = {np.float64: 1e-12, np.float32: 1e-6}


@functools.cache
def made(name):
    """The published defaults; chosen shares are raised so that 60 tokens show a choice."""
    changed = {
        "clip_cov": {"fraction": 0.05, "covariance_low": 0.1},
        "kl_cov": {"fraction": 0.05},
        "entropy_dynamics": {
            "batch_deviations": None,
            "vocabulary_deviations": 0.25,
            "max_fraction": 0.05,
        },
        "d3s": {"token_share_start": 0.5},
        "passk_advantage": {"advantage": subset_normalized(k=2)},
        "capo_curvature": {"top_k": 3},  # as many as were measured
        "sdpo": {"top_k": 3},
        "ghpo": {"weights": (1.0, 0.5, 0.25)},  # as many as the record has
        "cog_drift": {"weights": (1.0, 0.5, 0.25)},
        # In single precision rows of 5 of 3,584 tokens are alike, and so are rows that are all new;
        # a whole budget that is left costs nine, of which what is right changes one.
        "length_rewards": {"max_length": 8},
        "rlsp": {"max_length": 24},
        "rep_exploration": {"coefficient": 1.0, "ridge": 10.0},
    }
    found = recipe(name, **changed.get(name, {}))
    return replace(found, experience=None) if name in READS_TEXTS else found


def batch_of(name, soft=False):
    return prepared(name, golden.rollouts(CASE, soft))


def batch_in(dtype, name, case):
    return prepared(name, golden.rollouts(case, False, dtype))


def prepared(name, rollouts):
    needs = made(name).objective.reads
    if "cell" in needs and rollouts.cell is None:
        rollouts = replace(rollouts, cell=array(np.asarray(rollouts.rollout_id) % 2, np.int32))
    batch = golden.prepared(made(name), rollouts)
    if "supervised" in needs and batch.supervised is None:
        batch = replace(batch, supervised=array(np.zeros(batch.mask.shape[0]), bool))
    return replace(batch, supervised=batch.outcome > 0.5) if name in IMITATES else batch


def cleared(batch, rows):
    """The batch in which nothing is to be learned from some rows."""
    gone = np.isin(np.arange(batch.mask.shape[0]), rows)
    known = {"mask": array(np.asarray(batch.mask) & ~gone[:, None], bool)}
    if batch.supervised is not None:
        known["supervised"] = array(np.asarray(batch.supervised) & ~gone, bool)
    return replace(batch, **known)


def size_of_loss(step, batch):
    """Of its tokens: a loss of both signs may cancel."""
    size = np.abs(step.token_loss).sum() / max(np.asarray(batch.mask).sum(), 1)
    return max(size, np.abs(step.loss))


def run(name, stats=None, batch=None, seed=0):
    stats = golden.stats(CASE) if stats is None else stats
    batch = batch_of(name) if batch is None else batch
    return golden.step(made(name).objective, stats, batch, seed=seed)


def changed(tree, function):
    """Applies a function to the arrays of a pytree as numpy."""
    return jax.tree.map(lambda values: array(function(np.asarray(values)), values.dtype), tree)


def assert_same_step(found, wanted, gradient):
    assert_agrees(found.loss, wanted.loss)
    for name, values in wanted.metrics.items():
        assert_agrees(found.metrics[name], values)
    jax.tree.map(assert_agrees, gradient, wanted.dstats)


@every_method
def test_card_is_complete(name):
    card = method(name)
    assert isinstance(card, Method)
    assert card.recipe.__name__ == name
    assert card.recipe.__module__ == f"rlvr_jax.methods.{themes()[name]}.{name}"
    assert card.title and (not card.url or card.url.startswith("https://"))


@every_method
def test_order_of_rows_does_not_matter(name):
    order = np.random.default_rng(2).permutation(golden.inputs(CASE)["mask"].shape[0])
    stats, batch = golden.stats(CASE), batch_of(name)
    found = run(name, *(changed(tree, lambda v: v[order]) for tree in (stats, batch)))
    back = np.argsort(order)
    assert_same_step(found, run(name), changed(found.dstats, lambda v: v[back]))


@every_method
def test_wider_padding_does_not_matter(name):
    width = golden.inputs(CASE)["mask"].shape[1]

    def widen(values):
        if values.ndim < 2 or values.shape[1] != width:
            return values
        tokens = ((0, 0), (0, 3)) + ((0, 0),) * (values.ndim - 2)
        return np.pad(values, tokens, constant_values=False if values.dtype == bool else 1)

    found = run(name, changed(golden.stats(CASE), widen), changed(batch_of(name), widen))
    assert_same_step(found, run(name), changed(found.dstats, lambda v: v[:, :width]))


@every_method
def test_what_stands_off_the_mask_is_never_read(name):
    batch = batch_of(name)
    mask = np.asarray(batch.scored)

    def poison(values):
        if values.shape != mask.shape or not np.issubdtype(values.dtype, np.floating):
            return values
        return np.where(mask, values, np.nan)

    found = run(name, changed(golden.stats(CASE), poison), changed(batch, poison))
    assert_same_step(found, run(name), found.dstats)


@every_method
def test_rollouts_without_tokens_are_harmless(name):
    batch = batch_of(name, soft=name not in BINARY)
    found = run(name, batch=cleared(batch, [0, 5, 11]))
    assert_all_finite(found)
    assert not np.asarray(found.dstats.logp)[[0, 5, 11]].any()
    assert any(np.asarray(leaf).any() for leaf in jax.tree.leaves(found.dstats))


@every_method
def test_supervised_and_cleared_rows_change_nothing_for_the_others(name):
    """What is only imitated, fills a batch or has no verdict: losses, metrics and states do not
    know of it. A supervised row stands in the group of others, unless the method imitates it."""
    imitates = "supervised" in made(name).objective.reads
    rows = golden.inputs(CASE)["mask"].shape[0]
    order = np.insert(np.arange(rows), [1, 6, 12], [0, 5, 11])
    added = np.array([1, 7, 14])
    told = {
        "mask": False,
        "group": np.array([98 if imitates else int(batch_of(name).group[0]), -7, 99]),
        "rollout_id": rows + np.arange(3),
        "reward": np.array([1, 0, 1]),
        "outcome": np.array([1, 0, 1]),
    }
    batch = changed(batch_of(name), lambda v: v[order])
    fields = {field: np.asarray(getattr(batch, field)).copy() for field in told}
    for field, values in told.items():
        fields[field][added] = values
    before = batch.supervised
    supervised = np.zeros(rows + 3, bool) if before is None else np.asarray(before).copy()
    supervised[added] = False
    supervised[added[0]] = not imitates
    batch = replace(batch, **{field: array(v, v.dtype) for field, v in fields.items()})
    batch = replace(batch, supervised=array(supervised, bool))
    found, wanted = run(name, changed(golden.stats(CASE), lambda v: v[order]), batch), run(name)
    factor = (rows + 3) / rows if name in OVER_ALL_ROWS else 1
    found = found._replace(loss=factor * found.loss)
    gradient = changed(found.dstats, lambda v: factor * np.delete(v, added, axis=0))
    assert_same_step(found, wanted, gradient)
    jax.tree.map(assert_agrees, found.state, wanted.state)


@every_method
def test_groups_of_one_have_advantage_zero(name):
    batch = batch_of(name)
    rows = np.arange(batch.mask.shape[0])
    found = run(name, batch=replace(batch, group=array(rows[::-1] * 3, np.int32)))
    assert_all_finite(found)
    assert np.asarray(found.signals.advantage).any() == (name in NOT_ZERO_ALONE)


@every_method
def test_groups_of_equal_rewards_have_advantage_zero(name):
    batch = batch_of(name)
    reward = array(np.full(batch.reward.shape, 0.1), np.float64)
    found = run(name, batch=replace(batch, reward=reward))
    assert np.asarray(found.signals.advantage).any() == (name in NOT_ZERO_WHEN_EQUAL)


@every_method
def test_a_batch_without_tokens_has_loss_and_gradient_zero(name):
    batch = batch_of(name)
    found = run(name, batch=cleared(batch, np.arange(batch.mask.shape[0])))
    assert found.loss == 0
    assert_all_finite(found)
    assert not any(np.asarray(leaf).any() for leaf in jax.tree.leaves(found.dstats))


@every_method
def test_gradient_is_the_slope_of_the_loss(name):
    """Along a random direction of all statistics through which gradient flows."""
    random, step = np.random.default_rng(0), 3e-7
    leaves, tree = jax.tree.flatten(golden.stats(CASE))
    slopes = [np.asarray(slope) for slope in jax.tree.leaves(run(name).dstats)]
    direction = [random.normal(size=slope.shape) * np.any(slope != 0) for slope in slopes]

    def loss_at(distance):
        moved = [
            array(np.asarray(leaf) + distance * change, leaf.dtype) if change.any() else leaf
            for leaf, change in zip(leaves, direction, strict=True)
        ]
        return float(run(name, stats=jax.tree.unflatten(tree, moved)).loss)

    def slope_over(distance):
        return (loss_at(distance) - loss_at(-distance)) / (2 * distance)

    terms = [slope * change for slope, change in zip(slopes, direction, strict=True)]
    size = sum(np.abs(term).sum() for term in terms)
    # Two differences, so that curvature falls out: SDPO's rest of the vocabulary is nearly empty.
    found, wanted = (4 * slope_over(step) - slope_over(2 * step)) / 3, sum(map(np.sum, terms))
    # What is left of 16 digits after a difference of 1e-6.
    assert (abs(found - wanted) < 1e-8 * size) == (name not in NOT_THE_SLOPE)


@every_method
def test_without_old_log_probs_every_ratio_is_one(name):
    metrics = run(name, batch=replace(batch_of(name), old_logp=None)).metrics
    ratios = [metrics[f"ratio/{which}"] for which in ("min", "mean", "max")]
    # SimKO's denominator has an epsilon of 1e-8.
    close = np.allclose(ratios, 1, rtol=0, atol=1e-9 if name == "simko" else 0)
    assert close == (name not in OTHER_RATIO)


@every_method
@pytest.mark.parametrize("field", ["reward", "outcome"])
def test_a_grade_that_is_no_number_makes_the_loss_nan(name, field):
    batch = batch_of(name)
    grade = np.asarray(getattr(batch, field)).copy()
    grade[3] = np.nan
    found = run(name, batch=replace(batch, **{field: array(grade, grade.dtype)}))
    assert np.isnan(found.loss)


@every_method
def test_state_and_metrics_keep_their_structure_and_no_second_call_compiles(name):
    own, batch, stats = made(name).objective, batch_of(name), golden.stats(CASE)
    first = golden.step(own, stats, batch)
    with compilations("_step") as compiled:
        second = golden.step(own, stats, batch, state=first.state, seed=1)
    assert not compiled
    spec = golden.spec(batch)
    for state in (first.state, second.state):
        assert signature(state) == signature(own.init(spec))
    assert signature(first.metrics) == signature(second.metrics)
    assert all(np.shape(value) == () for value in first.metrics.values())


@every_method
def test_float32_is_finite_and_agrees_with_float64(name):
    batch = batch_in(np.float32, name, CASE)
    found = run(name, golden.stats(CASE, np.float32), batch)
    assert found.loss.dtype == found.dstats.logp.dtype == np.float32
    assert_all_finite(found)
    wanted = run(name)
    limit = FLOAT32 * size_of_loss(wanted, batch)
    np.testing.assert_allclose(found.loss, wanted.loss, rtol=0, atol=limit)
    assert_agrees(found.dstats.logp, wanted.dstats.logp, FLOAT32)


@every_method
@pytest.mark.parametrize("dtype", SPLIT)
@pytest.mark.parametrize("pieces", [2, 4])
def test_cotangents_of_a_micro_batch_come_from_its_own_statistics(name, pieces, dtype):
    """What an update relies on that pulls each piece back before the others are measured."""
    if "batch_statistics" in made(name).objective.reads:
        pytest.skip("asks for the statistics of the whole batch before any cotangent")
    stats, batch = golden.stats(CASE, dtype), batch_in(dtype, name, CASE)
    whole = run(name, stats, batch)
    rows = np.array_split(np.arange(batch.mask.shape[0]), pieces)
    for piece in rows:
        own = np.isin(np.arange(batch.mask.shape[0]), piece)

        def hide(values, own=own):
            return np.where(own.reshape(-1, *(1,) * (values.ndim - 1)), values, 0)

        found = run(name, changed(stats, hide), batch)
        for slope, wanted in zip(*map(jax.tree.leaves, (found.dstats, whole.dstats)), strict=True):
            assert_agrees(np.asarray(slope)[piece], np.asarray(wanted)[piece], SPLIT[dtype])


@pytest.mark.parametrize("name", FROM_OLD)
def test_the_same_with_old_statistics_of_the_pass_itself(name):
    """The first update of a batch, where nothing was scored before."""
    assert "batch_statistics" in made(name).objective.reads


@every_method
def test_what_is_decided_once_is_what_one_update_decides(name):
    own, batch = made(name).objective, batch_of(name)
    state, key = own.init(golden.spec(batch)), jax.random.key(0)
    if own.decide_once is None:
        pytest.skip("its advantage reads the current policy")
    decided, _, metrics = jax.jit(own.decide_once)(batch, state, key)
    found, wanted = run(name, batch=decided), run(name)
    assert_agrees(found.loss, wanted.loss)
    jax.tree.map(assert_agrees, found.dstats, wanted.dstats)
    for field in ("advantage", "weight", "mask"):
        assert_agrees(decision(found, batch, field), decision(wanted, batch, field))
    assert {**metrics, **found.metrics}.keys() == wanted.metrics.keys()


@pytest.mark.parametrize("name", everyday(ONCE, "gpg", "reinforce_plus_plus"))
def test_what_compares_the_whole_batch_does_not_see_its_updates(name):
    own, stats, batch = made(name).objective, golden.stats(CASE), batch_of(name)
    state, key = own.init(golden.spec(batch)), jax.random.key(0)
    decided, _, _ = jax.jit(own.decide_once)(batch, state, key)
    first, whole = np.asarray(batch.group == batch.group[0]), run(name)
    by_itself = False
    for rows in map(np.flatnonzero, (first, ~first)):
        part, own_rows, told = (
            changed(tree, lambda v, rows=rows: v[rows]) for tree in (stats, batch, decided)
        )
        found, alone = run(name, part, told), run(name, part, own_rows)
        for field in ("advantage", "weight", "mask"):
            once = decision(found, own_rows, field)
            assert_agrees(once, decision(whole, batch, field)[rows])
            by_itself |= np.any(once != decision(alone, own_rows, field))
    assert by_itself


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("arbitrary_entropy", "controllers"),
        ("dcpo", "last_entropy_estimate"),
        ("gdro", "largest_bin_weight"),
    ],
)
def test_controllers_of_the_batch_act_before_it_is_split(name, metric):
    own, batch = made(name).objective, batch_of(name)
    state, key = own.init(golden.spec(batch)), jax.random.key(0)
    _, moved, metrics = jax.jit(own.decide_once)(batch, state, key)
    assert metric in metrics
    assert any(np.any(a != b) for a, b in zip(*map(jax.tree.leaves, (moved, state)), strict=True))


@pytest.mark.slow
@every_method
@pytest.mark.parametrize("dtype", SPLIT)
def test_rows_on_eight_devices_give_the_step_of_one(name, dtype):
    stats, batch = golden.stats("a", dtype), batch_in(dtype, name, "a")
    mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))

    def shard(values):
        return jax.device_put(values, NamedSharding(mesh, PartitionSpec("data")))

    found, wanted = run(name, *jax.tree.map(shard, (stats, batch))), run(name, stats, batch)
    # The gradient is what must not depend on the devices; the loss is a sum that cancels.
    limit = max(SPLIT[dtype], FLOAT32 * (dtype == np.float32)) * size_of_loss(wanted, batch)
    np.testing.assert_allclose(found.loss, wanted.loss, rtol=0, atol=limit)
    jax.tree.map(
        lambda slope, expected: assert_agrees(slope, expected, SPLIT[dtype]),
        found.dstats,
        wanted.dstats,
    )


@every_method
def test_metrics_include_those_that_every_objective_reports(name):
    assert run(name).metrics.keys() >= {
        "clipped_share",
        "covariance",
        "ratio/min",
        "ratio/mean",
        "ratio/max",
        "ratio/effective_sample_size",
    }


@every_method
def test_only_a_random_choice_depends_on_the_key(name):
    first, second = run(name), run(name, seed=1)
    if name in RANDOM:
        weights = (np.asarray(done.signals.weight) for done in (first, second))
        assert np.any(next(weights) != next(weights))
    else:
        assert first.loss == second.loss


def decision(step, batch, field):
    return np.where(batch.mask, getattr(step.signals, field), 0)


def signature(tree):
    leaves, structure = jax.tree.flatten(tree)
    return structure, [(leaf.shape, leaf.dtype) for leaf in leaves]


def assert_all_finite(step):
    for leaf in jax.tree.leaves((step.loss, step.dstats, step.metrics, step.state)):
        assert np.isfinite(leaf).all()
