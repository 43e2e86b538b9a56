"""What users give to the sampler: keys, stop tokens, labels of groups."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.policy import Model, named_config
from rlvr_jax.rollout import Sampling, empty, fork, reset, sample
from rlvr_jax.rollout.keys import named_key
from rlvr_jax.types import Rollouts

MODEL = Model(named_config("tiny", vocab_size=11))
PARAMS = MODEL.init(jax.random.key(0))
PROMPTS = np.array([[1, 2], [3, 0]])


def drawn(key=None, **changes):
    given = dict(samples=2, response_tokens=3, sampling=Sampling(), stop_tokens=(0,)) | changes
    key = jax.random.key(1) if key is None else key
    return sample(
        MODEL, PARAMS, given.pop("prompts", PROMPTS), [2, 1], [0, 1], [0, 0], key, **given
    )


def same(one, two):
    jax.tree.map(np.testing.assert_array_equal, one, two)


def test_a_raw_key_is_the_key_that_it_holds():
    same(drawn(jax.random.PRNGKey(1)), drawn(jax.random.key(1)))


@pytest.mark.parametrize("stops", [[0, 5], (5, 0), np.array([0, 5])])
def test_stop_tokens_may_be_in_any_sequence(stops):
    same(drawn(stop_tokens=stops), drawn(stop_tokens=(0, 5)))


def test_prompts_may_be_lists():
    same(drawn(prompts=PROMPTS.tolist()), drawn())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"key": 3}, r"key must be one of jax.random.key, got int64\[\]"),
        ({"key": jax.random.key(0, impl="rbg")}, "key must be of the generator threefry2x32, got"),
        ({"stop_tokens": 0}, r"stop_tokens must be a sequence of ids, got int64\[\]"),
        ({"stop_tokens": None}, "stop_tokens must be a sequence of ids, got None"),
        ({"stop_tokens": [0.5]}, r"stop_tokens must be a sequence of ids, got float64\[1\]"),
        (
            {"prompts": np.array([1, 2])},
            r"prompt_tokens must be \[P, L\], right-padded, got \(2,\)",
        ),
        ({"samples": 0}, "samples must be at least 1, got 0"),
        ({"response_tokens": 0}, "response_tokens must be at least 1, got 0"),
    ],
)
def test_arguments_that_are_none_of_the_sampler_s_are_refused(changes, message):
    with pytest.raises(ValueError, match=f"sample: {message}"):
        drawn(**changes)


def test_keys_of_a_run_are_the_same_under_another_default_generator(monkeypatch):
    wanted = jax.random.key_data(named_key(3, "sampler", 1))
    with jax.default_prng_impl("rbg"):
        found = jax.random.key_data(named_key(3, "sampler", 1))
    np.testing.assert_array_equal(found, wanted)


def test_rows_of_a_pool_have_the_keys_and_groups_that_are_given():
    keys, groups = jax.random.split(jax.random.key(4), 3), jnp.array([7, 7, 8])
    pool = empty(MODEL, 3, 6, keys, groups)
    same(jax.random.key_data(pool.key), jax.random.key_data(keys))
    forked = fork(pool, jnp.array([2, 0]), jnp.array([0, 0]), jax.random.key_data(keys[:2]))
    same(forked.group, np.array([8, 7]))
    same(jax.random.key_data(forked.key), jax.random.key_data(keys[:2]))
    again = reset(
        MODEL,
        PARAMS,
        pool,
        jnp.array([True, False, True]),
        np.ones((3, 2), int),
        [2, 0, 2],
        jax.random.key_data(jax.random.split(jax.random.key(5), 3)),
    )
    same(jax.random.key_data(again.key[1]), jax.random.key_data(keys[1]))


@pytest.mark.parametrize(
    ("labels", "numbers"),
    [
        ([2**33, 2**34, 2**33], [0, 1, 0]),
        (["b", "a", "b"], [0, 1, 0]),
        ([5, 5, 7], [5, 5, 7]),
        ([], []),
    ],
)
def test_labels_of_groups_stay_apart(labels, numbers):
    rows = len(labels)
    made = Rollouts.of_responses(
        np.zeros((rows, 2), int), np.ones((rows, 2), bool), np.zeros(rows), labels
    )
    np.testing.assert_array_equal(made.group, np.array(numbers, np.int32))
    assert made.group.dtype == jnp.int32
