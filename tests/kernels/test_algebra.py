"""The formulas: parts of a vocabulary merge to the whole, in any orientation."""

import jax
import jax.numpy as jnp
import numpy as np
from devices import NEEDS_EIGHT_DEVICES
from jax.sharding import Mesh, PartitionSpec
from numpy.testing import assert_allclose, assert_array_equal

from rlvr_jax.kernels import algebra

# float64, sums of 20 terms.
FLOAT64 = 1e-13


def case():
    logits = np.random.default_rng(4).normal(size=(6, 20)) * 10
    logits[0, :10] = -np.inf  # a half that holds nothing
    logits[1] = 2.0  # ties across the halves
    return jnp.asarray(logits), jnp.asarray(logits[:, 15])


def sums(logits, target, first=0, axis=1):
    empty = algebra.start(algebra.STREAMING, 6, jnp.float64, jnp.full(6, 0.6))
    return algebra.update(empty, logits, target, first, axis=axis)


def assert_same(actual, expected):
    for name in algebra.STREAMING:
        wanted = expected[name]
        assert_allclose(actual[name], wanted, rtol=FLOAT64, atol=FLOAT64, err_msg=name)


def test_merging_two_halves_of_the_vocabulary_is_seeing_all_of_it():
    logits, target = case()
    left, right = sums(logits[:, :10], 0 * target), sums(logits[:, 10:], target, 10)
    whole = algebra.finish(sums(logits, target), 20)
    assert_same(algebra.finish(algebra.merge(left, right), 20), whole)
    assert_same(algebra.finish(algebra.merge(right, left), 20), whole)


def test_updating_with_a_second_tile_is_seeing_both_at_once():
    logits, target = case()
    in_turn = algebra.update(sums(logits[:, :10], 0 * target), logits[:, 10:], target, 10)
    assert_same(algebra.finish(in_turn, 20), algebra.finish(sums(logits, target), 20))
    assert_array_equal(in_turn.max_id, np.argmax(logits, axis=1))


def test_a_transposed_tile_gives_the_same():
    logits, target = case()
    transposed = algebra.finish(sums(logits.T, target, axis=0), 20)
    assert_same(transposed, algebra.finish(sums(logits, target), 20))


def test_a_small_ratio_counts_what_lies_far_below_the_largest_logit():
    logits = np.random.default_rng(5).normal(size=(6, 20)) * 3e4
    logits[:, 7] = -np.inf
    logits[:, 10:] += 6e4  # the halves are far apart, too
    ratio = 1e-4
    expected = np.log(np.sum(np.exp(ratio * logits), axis=1))
    whole, target = jnp.asarray(logits), jnp.asarray(logits[:, 15])
    empty = algebra.start(["second_logp"], 6, jnp.float64, jnp.full(6, ratio))
    left = algebra.update(empty, whole[:, :10], 0 * target)
    right = algebra.update(empty, whole[:, 10:], target, 10)
    merged = algebra.merge(left, right), algebra.update(left, whole[:, 10:], target, 10)
    for sums_of_all in (algebra.update(empty, whole, target), *merged):
        assert_allclose(algebra.second_logsumexp(sums_of_all), expected, rtol=FLOAT64)
        found = algebra.finish(sums_of_all, 19)["second_logp"]
        assert_allclose(found, ratio * logits[:, 15] - expected, rtol=FLOAT64)


@NEEDS_EIGHT_DEVICES
def test_merging_over_devices_is_merging():
    logits, target = case()
    mesh = Mesh(np.array(jax.devices()[:2]), ("tensor",))

    def on_device(logits, target):
        first = jax.lax.axis_index("tensor") * 10
        seen = jnp.where(first == 10, target, 0)
        merged = algebra.merge_shards(sums(logits, seen, first), "tensor")
        return algebra.finish(merged, 20)

    specs = PartitionSpec(None, "tensor"), PartitionSpec()
    run = jax.shard_map(
        on_device, mesh=mesh, in_specs=specs, out_specs=PartitionSpec(), check_vma=False
    )
    assert_same(jax.jit(run)(logits, target), algebra.finish(sums(logits, target), 20))
