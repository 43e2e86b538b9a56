"""Laws of every loss, for each distinct composition of parts in the folder of methods."""

import functools

import golden_vectors as golden
import jax
import numpy as np
import pytest
from everyday import everyday
from golden_vectors import array, assert_agrees
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from skeletons import cover, distinct

from docs.metrics_page import metrics_of, unknown
from rlvr_jax.analysis.metrics import declared
from rlvr_jax.methods import method, names, recipe, themes
from rlvr_jax.objectives import laws
from rlvr_jax.objectives.laws.cases import FLOAT32, size_of_loss
from rlvr_jax.types import Method, replace

# Compiled in the fast set: between them they use every shared part. The others are slow.
every_skeleton = pytest.mark.parametrize("name", everyday(distinct(), *cover()))
CASE = "b"
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
    if "cell" in needs and "cell" not in rollouts.records:
        rollouts = rollouts.replace(cell=array(np.asarray(rollouts.rollout_id) % 2, np.int32))
    if "edits" in needs:
        rollouts = rollouts.replace(edits=array(rollouts.mask, np.int32))
    batch = golden.prepared(made(name), rollouts)
    if "supervised" in needs and "supervised" not in batch.records:
        batch = batch.replace(supervised=array(np.zeros(batch.mask.shape[0]), bool))
    return batch.replace(supervised=batch.outcome > 0.5) if imitates(name) else batch


@pytest.mark.parametrize("name", names())
def test_card_is_complete(name):
    card = method(name)
    assert isinstance(card, Method)
    assert card.recipe.__name__ == name
    assert card.recipe.__module__ == f"rlvr_jax.methods.{themes()[name]}.{name}"
    assert card.title and (not card.url or card.url.startswith("https://"))


@functools.cache
def case_of(name):
    own = made(name).objective
    soft = batch_of(name, soft=True)
    return laws.Case(own, golden.stats(CASE), batch_of(name), method(name), soft)


@every_skeleton
@pytest.mark.parametrize("law", laws.LAWS)
def test_every_law_holds(name, law):
    laws.LAWS[law](case_of(name))


@every_skeleton
def test_docstrings_list_every_metric(name):
    case = case_of(name)
    every = {metric for one in declared() for metric in one.names}
    assert unknown(case.found.metrics, metrics_of(case.objective) | every) == []


@pytest.mark.slow
@every_skeleton
@pytest.mark.parametrize("dtype", SPLIT)
def test_rows_on_eight_devices_give_the_step_of_one(name, dtype):
    stats, batch = golden.stats("a", dtype), batch_in(dtype, name, "a")
    mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))

    def shard(values):
        return jax.device_put(values, NamedSharding(mesh, PartitionSpec("data")))

    own = laws.Case(made(name).objective, stats, batch, method(name))
    found, wanted = own.step(*jax.tree.map(shard, (stats, batch))), own.found
    # The gradient is what must not depend on the devices; the loss is a sum that cancels.
    limit = max(SPLIT[dtype], FLOAT32 * (dtype == np.float32)) * size_of_loss(own)
    np.testing.assert_allclose(found.loss, wanted.loss, rtol=0, atol=limit)
    jax.tree.map(
        lambda slope, expected: assert_agrees(slope, expected, SPLIT[dtype]),
        found.dstats,
        wanted.dstats,
    )
