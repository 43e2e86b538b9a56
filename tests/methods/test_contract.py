"""Laws of every loss, for each distinct composition of parts in the folder of methods."""

import functools

import golden_vectors as golden
import jax
import numpy as np
import pytest
from compiling import compilations
from everyday import everyday
from golden_vectors import array, assert_agrees
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from skeletons import cover, distinct

from rlvr_jax.methods import method, names, recipe, themes
from rlvr_jax.types import Method, replace

# Compiled in the fast set: between them they use every shared part. The others are slow.
every_skeleton = pytest.mark.parametrize("name", everyday(distinct(), *cover()))
CASE = "b"
EPSILON = 1e-9  # the ratio of a method may have a small number in its denominator
FLOAT32 = 1e-5  # float32, sums of at most some hundred terms
# The same numbers summed in another order.
SPLIT = {np.float64: 1e-12, np.float32: 1e-6}


@functools.cache
def made(name):
    """The recipe on a small batch; without an experience that grades texts, which it has not."""
    found = recipe(name, **method(name).small)
    chain = found.experience
    reads_texts = chain is not None and any(one.startswith("grade_also") for one in chain.stages)
    return replace(found, experience=None) if reads_texts else found


def imitates(name):
    """Whether it reads supervised rows and nothing on the mask."""
    own = made(name).objective
    return own.labels[0].startswith("no_policy_loss") and "supervised" in own.reads


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
    return replace(batch, supervised=batch.outcome > 0.5) if imitates(name) else batch


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


@pytest.mark.parametrize("name", names())
def test_card_is_complete(name):
    card = method(name)
    assert isinstance(card, Method)
    assert card.recipe.__name__ == name
    assert card.recipe.__module__ == f"rlvr_jax.methods.{themes()[name]}.{name}"
    assert card.title and (not card.url or card.url.startswith("https://"))


@every_skeleton
def test_order_of_rows_does_not_matter(name):
    order = np.random.default_rng(2).permutation(golden.inputs(CASE)["mask"].shape[0])
    stats, batch = golden.stats(CASE), batch_of(name)
    found = run(name, *(changed(tree, lambda v: v[order]) for tree in (stats, batch)))
    back = np.argsort(order)
    assert_same_step(found, run(name), changed(found.dstats, lambda v: v[back]))


@every_skeleton
def test_wider_padding_does_not_matter(name):
    width = golden.inputs(CASE)["mask"].shape[1]

    def widen(values):
        if values.ndim < 2 or values.shape[1] != width:
            return values
        tokens = ((0, 0), (0, 3)) + ((0, 0),) * (values.ndim - 2)
        return np.pad(values, tokens, constant_values=False if values.dtype == bool else 1)

    found = run(name, changed(golden.stats(CASE), widen), changed(batch_of(name), widen))
    assert_same_step(found, run(name), changed(found.dstats, lambda v: v[:, :width]))


@every_skeleton
def test_what_stands_off_the_mask_is_never_read(name):
    batch = batch_of(name)
    mask = np.asarray(batch.scored)

    def poison(values):
        if values.shape != mask.shape or not np.issubdtype(values.dtype, np.floating):
            return values
        return np.where(mask, values, np.nan)

    found = run(name, changed(golden.stats(CASE), poison), changed(batch, poison))
    assert_same_step(found, run(name), found.dstats)


@every_skeleton
def test_rollouts_without_tokens_are_harmless(name):
    batch = batch_of(name, soft=method(name).rewards == "any")
    found = run(name, batch=cleared(batch, [0, 5, 11]))
    assert_all_finite(found)
    assert not np.asarray(found.dstats.logp)[[0, 5, 11]].any()
    assert any(np.asarray(leaf).any() for leaf in jax.tree.leaves(found.dstats))


@every_skeleton
def test_supervised_and_cleared_rows_change_nothing_for_the_others(name):
    """What is only imitated, fills a batch or has no verdict: losses, metrics and states do not
    know of it. A supervised row stands in the group of others, unless the method imitates it."""
    supervises = "supervised" in made(name).objective.reads
    rows = golden.inputs(CASE)["mask"].shape[0]
    order = np.insert(np.arange(rows), [1, 6, 12], [0, 5, 11])
    added = np.array([1, 7, 14])
    told = {
        "mask": False,
        "group": np.array([98 if supervises else int(batch_of(name).group[0]), -7, 99]),
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
    supervised[added[0]] = not supervises
    batch = replace(batch, **{field: array(v, v.dtype) for field, v in fields.items()})
    batch = replace(batch, supervised=array(supervised, bool))
    found, wanted = run(name, changed(golden.stats(CASE), lambda v: v[order]), batch), run(name)
    factor = (rows + 3) / rows if method(name).denominator == "rows" else 1
    found = found._replace(loss=factor * found.loss)
    gradient = changed(found.dstats, lambda v: factor * np.delete(v, added, axis=0))
    assert_same_step(found, wanted, gradient)
    jax.tree.map(assert_agrees, found.state, wanted.state)


@every_skeleton
def test_groups_of_one_have_advantage_zero(name):
    batch = batch_of(name)
    rows = np.arange(batch.mask.shape[0])
    found = run(name, batch=replace(batch, group=array(rows[::-1] * 3, np.int32)))
    assert_all_finite(found)
    assert np.asarray(found.signals.advantage).any() == (
        method(name).baseline in ("batch", "other")
    )


@every_skeleton
def test_groups_of_equal_rewards_have_advantage_zero(name):
    batch = batch_of(name)
    reward = array(np.full(batch.reward.shape, 0.1), np.float64)
    found = run(name, batch=replace(batch, reward=reward))
    assert np.asarray(found.signals.advantage).any() == (
        method(name).baseline in ("signal", "other")
    )


@every_skeleton
def test_a_batch_without_tokens_has_loss_and_gradient_zero(name):
    batch = batch_of(name)
    found = run(name, batch=cleared(batch, np.arange(batch.mask.shape[0])))
    assert found.loss == 0
    assert_all_finite(found)
    assert not any(np.asarray(leaf).any() for leaf in jax.tree.leaves(found.dstats))


@every_skeleton
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
    assert (abs(found - wanted) < 1e-8 * size) == (method(name).gradient == "slope")


@every_skeleton
def test_without_old_log_probs_every_ratio_is_one(name):
    metrics = run(name, batch=replace(batch_of(name), old_logp=None)).metrics
    ratios = [metrics[f"ratio/{which}"] for which in ("min", "mean", "max")]
    assert np.allclose(ratios, 1, rtol=0, atol=EPSILON) == (method(name).ratio == "policy")


@every_skeleton
@pytest.mark.parametrize("field", ["reward", "outcome"])
def test_a_grade_that_is_no_number_makes_the_loss_nan(name, field):
    batch = batch_of(name)
    grade = np.asarray(getattr(batch, field)).copy()
    grade[3] = np.nan
    found = run(name, batch=replace(batch, **{field: array(grade, grade.dtype)}))
    assert np.isnan(found.loss)


@every_skeleton
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


@every_skeleton
def test_float32_is_finite_and_agrees_with_float64(name):
    batch = batch_in(np.float32, name, CASE)
    found = run(name, golden.stats(CASE, np.float32), batch)
    assert found.loss.dtype == found.dstats.logp.dtype == np.float32
    assert_all_finite(found)
    wanted = run(name)
    limit = FLOAT32 * size_of_loss(wanted, batch)
    np.testing.assert_allclose(found.loss, wanted.loss, rtol=0, atol=limit)
    assert_agrees(found.dstats.logp, wanted.dstats.logp, FLOAT32)


@every_skeleton
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


@every_skeleton
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


@every_skeleton
def test_what_compares_the_whole_batch_does_not_see_its_updates(name):
    own, stats, batch = made(name).objective, golden.stats(CASE), batch_of(name)
    parts = dict(own.made.arguments)
    if not any(part.once for part in (parts["advantage"], *parts["transforms"])):
        pytest.skip("no part compares the whole batch before it is split")
    state, key = own.init(golden.spec(batch)), jax.random.key(0)
    decided, moved, _ = jax.jit(own.decide_once)(batch, state, key)
    first, whole = np.asarray(batch.group == batch.group[0]), run(name)
    for rows in map(np.flatnonzero, (first, ~first)):
        part, own_rows, told = (
            changed(tree, lambda v, rows=rows: v[rows]) for tree in (stats, batch, decided)
        )
        found = run(name, part, told)
        for field in ("advantage", "weight", "mask"):
            once = decision(found, own_rows, field)
            assert_agrees(once, decision(whole, batch, field)[rows])
    for one, after in moved.items():  # a controller acts on the batch, not on its updates
        if any(part.once and part.name == one for part in parts["transforms"]):
            jax.tree.map(assert_agrees, after, whole.state[one])


@pytest.mark.slow
@every_skeleton
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


@every_skeleton
def test_metrics_include_those_that_every_objective_reports(name):
    assert run(name).metrics.keys() >= {
        "clipped_share",
        "covariance",
        "ratio/min",
        "ratio/mean",
        "ratio/max",
        "ratio/effective_sample_size",
    }


@every_skeleton
def test_only_a_random_choice_depends_on_the_key(name):
    first, second = run(name), run(name, seed=1)
    if method(name).random:
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
