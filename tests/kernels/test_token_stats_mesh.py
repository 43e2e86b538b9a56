"""token_stats over a mesh: the result of one device, with the collectives that it needs."""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from everyday import everyday
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from token_stats_cases import (
    EVERYTHING,
    FLOAT32,
    FLOAT64,
    assert_close,
    evaluate,
    make_case,
)

from rlvr_jax.kernels.token_stats import STATISTICS, token_stats

MESHES = [  # sizes of axes: all three, two of them, one
    {"data": 2, "fsdp": 1, "tensor": 4},
    {"data": 2, "fsdp": 2, "tensor": 2},
    {"fsdp": 8},
    {"tensor": 8},
]


def make_mesh(sizes):
    axis_types = (AxisType.Auto,) * len(sizes)
    return jax.make_mesh(tuple(sizes.values()), tuple(sizes), axis_types=axis_types)


@pytest.mark.thorough
@pytest.mark.parametrize("sizes", everyday(MESHES, MESHES[0], MESHES[2]), ids=str)
@pytest.mark.parametrize("form", ["xla in tiles"], indirect=True)
def test_a_mesh_gives_the_result_of_one_device(form, sizes):
    arrays, targets, options = make_case((13, 4, 40), EVERYTHING, np.float64)  # 13: no divisor
    expected, expected_gradients = evaluate(form, arrays, targets, options)
    stats, gradients = evaluate(form, arrays, targets, options, mesh=make_mesh(sizes))
    expected = {name: np.asarray(value) for name, value in expected.items()}
    assert_close(stats, expected, FLOAT64)
    expected_gradients = {name: np.asarray(x) for name, x in expected_gradients.items()}
    assert_close(gradients, expected_gradients, FLOAT64)


@pytest.mark.thorough
def test_a_mesh_serves_vocabularies_of_one_tile():
    arrays, targets, options = make_case((15, 4, 40), EVERYTHING)  # 15: one token is filled up
    arrays["bias"][5] = -np.inf
    targets = np.where(targets == 5, 6, targets)
    expected, expected_gradients = evaluate("xla", arrays, targets, options)
    mesh = make_mesh(MESHES[0])
    stats, gradients = evaluate("xla", arrays, targets, options, mesh=mesh)
    assert_close(stats, {name: np.asarray(x) for name, x in expected.items()}, FLOAT32)
    gradients_of_one = {name: np.asarray(x) for name, x in expected_gradients.items()}
    assert_close(gradients, gradients_of_one, FLOAT32)


@pytest.mark.parametrize("form", ["xla in tiles"], indirect=True)
def test_a_vocabulary_split_over_devices_costs_two_collectives(form):
    mesh = make_mesh(MESHES[0])
    needs = tuple(name for name in STATISTICS[:10] if name != "max_id")
    arrays, targets, _ = make_case((16, 4, 40))
    by_token = NamedSharding(mesh, PartitionSpec("data"))
    by_entry = NamedSharding(mesh, PartitionSpec("tensor"))
    measure = jax.jit(
        functools.partial(token_stats, needs=needs, second_temperature=2.0, mesh=mesh),
        in_shardings=(by_token, by_entry, by_token),
    )
    text = measure.lower(*arrays.values(), targets.astype(np.int32)).compile().as_text()
    collectives = re.findall(r" (all-reduce|all-gather|all-to-all|collective-permute)\(", text)
    assert collectives == ["all-reduce"] * 2


def test_the_unembedding_is_not_gathered_backward():
    mesh = make_mesh(MESHES[0])
    arrays, targets, _ = make_case((16, 4, 4 * 2056))
    by_token = NamedSharding(mesh, PartitionSpec("data"))
    by_entry = NamedSharding(mesh, PartitionSpec("tensor"))

    def loss(hidden, unembedding, targets):
        stats = token_stats(hidden, unembedding, targets, needs=("logp", "entropy"), mesh=mesh)
        return jnp.sum(stats.logp * stats.entropy)

    gradient = jax.jit(
        jax.grad(loss, (0, 1)),
        in_shardings=(by_token, by_entry, by_token),
        out_shardings=(by_token, by_entry),
    )
    text = gradient.lower(*arrays.values(), targets.astype(np.int32)).compile().as_text()
    assert "all-gather" not in text


def test_a_vocabulary_that_the_mesh_does_not_divide_is_refused():
    arrays, targets, _ = make_case((8, 4, 37))
    with pytest.raises(ValueError, match="axis tensor must divide the vocabulary, got size 4 and"):
        token_stats(targets=targets, needs={"logp"}, mesh=make_mesh(MESHES[0]), **arrays)
