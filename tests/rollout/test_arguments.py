"""What users give to the sampler: keys, stop tokens, labels of groups."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.keys import named_key
from rlvr_jax.policy import Model, named_config
from rlvr_jax.rollout import (
    Prompts,
    Sampling,
    decode,
    empty,
    fork,
    fork_into,
    prefill,
    probe,
    reset,
    resume,
    retire,
    sample,
)
from rlvr_jax.rollout.processors import LEAST_TEMPERATURE
from rlvr_jax.types import Rollouts

MODEL = Model(named_config("tiny", vocab_size=11))
PARAMS = MODEL.init(jax.random.key(0))
PROMPTS = np.array([[1, 2], [3, 0]])


def sampled(key=None, **changes):
    given = dict(samples=2, response_tokens=3, sampling=Sampling(), stop_tokens=(0,)) | changes
    key = jax.random.key(1) if key is None else key
    return sample(
        MODEL,
        PARAMS,
        Prompts(
            given.pop("prompts", PROMPTS),
            given.pop("lengths", [2, 1]),
            given.pop("numbers", [0, 1]),
            [0, 0],
            given.pop("temperature", None),
        ),
        key,
        **given,
    )


def same(one, two):
    jax.tree.map(np.testing.assert_array_equal, one, two)


@pytest.mark.thorough
def test_a_raw_key_is_the_key_that_it_holds():
    same(sampled(jax.random.PRNGKey(1)), sampled(jax.random.key(1)))


@pytest.mark.thorough
@pytest.mark.parametrize("stops", [[0, 5], (5, 0), np.array([0, 5])])
def test_stop_tokens_may_be_in_any_sequence(stops):
    same(sampled(stop_tokens=stops), sampled(stop_tokens=(0, 5)))


def test_prompts_may_be_lists():
    same(sampled(prompts=PROMPTS.tolist()), sampled())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"key": 3}, r"key must be one of jax.random.key, got int64\[\]"),
        ({"key": "seed"}, "key must be one of jax.random.key, got 'seed'"),
        ({"key": jax.random.key(0, impl="rbg")}, "key must be of the generator threefry2x32, got"),
        ({"stop_tokens": 0}, r"stop_tokens must be a sequence of ids, got int64\[\]"),
        ({"stop_tokens": None}, "stop_tokens must be a sequence of ids, got None"),
        ({"stop_tokens": [0.5]}, r"stop_tokens must be a sequence of ids, got float64\[1\]"),
        (
            {"prompts": np.array([1, 2])},
            r"prompts.tokens must be integers \[P, L\], right-padded, got int64\[2\]",
        ),
        ({"samples": 0}, "samples must be at least 1, got 0"),
        ({"response_tokens": 0}, "response_tokens must be at least 1, got 0"),
    ],
)
def test_arguments_that_are_none_of_the_sampler_s_are_refused(changes, message):
    with pytest.raises(ValueError, match=f"sample: {message}"):
        sampled(**changes)


def test_keys_of_a_run_are_the_same_under_another_default_generator(monkeypatch):
    wanted = jax.random.key_data(named_key(3, "sampler", 1))
    with jax.default_prng_impl("rbg"):
        found = jax.random.key_data(named_key(3, "sampler", 1))
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.thorough
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
        key=jax.random.key_data(jax.random.split(jax.random.key(5), 3)),
    )
    same(jax.random.key_data(again.key[1]), jax.random.key_data(keys[1]))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("labels", "numbers"),
    [
        ([2**33, 2**34, 2**33], [0, 1, 0]),
        (["b", "a", "b"], [0, 1, 0]),
        ([5, 5, 7], [5, 5, 7]),
        (["1", 1, "a", 1], [0, 1, 2, 1]),
        (list(jnp.arange(3)), [0, 1, 2]),
        ([None, None, 1], [0, 0, 1]),
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


def test_stop_tokens_may_be_a_set():
    same(sampled(stop_tokens={5, 0}), sampled(stop_tokens=(0, 5)))


@pytest.mark.thorough
@pytest.mark.parametrize("temperature", [0.0, 1e-8, [1e-30, 0.0]])
def test_a_temperature_below_the_least_draws_the_likeliest_tokens(temperature):
    greedy = sampled(sampling=Sampling(top_k=1))
    cold = sampled(temperature=jnp.asarray(temperature))
    same(cold.tokens, greedy.tokens)
    # Quotients of some 1e5 are rounded to 1/128, and a log-prob is the difference of two.
    np.testing.assert_allclose(cold.behaviour_logp, 0, atol=1 / 64)
    np.testing.assert_allclose(cold.entropy, 0, atol=1 / 64)
    same(cold.temperature, np.full(cold.mask.shape, np.float32(LEAST_TEMPERATURE)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sampling": None}, "sampling must be a Sampling, got None"),
        ({"samples": 2.0}, "samples must be a whole number, got 2.0"),
        ({"response_tokens": 2047}, "response_tokens must be at most 2046 after prompts of 2"),
        ({"prompts": [[1, 2], [3]]}, r"prompts.tokens must be integers \[P, L\]"),
        ({"prompts": [[1, 11], [3, 0]]}, "prompts.tokens must be in 0 … 10, got 11"),
        ({"prompts": [[1, -1], [3, 0]]}, "prompts.tokens must be in 0 … 10, got -1"),
        ({"lengths": [0, 1]}, "prompts.length must be in 1 … 2, got 0"),
        ({"lengths": [3, 1]}, "prompts.length must be in 1 … 2, got 3"),
        ({"lengths": 2}, r"prompts.length must be 2 whole numbers, one for each prompt, got int64"),
        ({"numbers": [2**33, 2**34]}, "prompts.number must be in 0 … 2147483647, got 17179869184"),
        (
            {"numbers": ["a", "b"]},
            "prompts.number must be 2 whole numbers, one for each prompt, got <U1",
        ),
        ({"numbers": [0.5, 1]}, "prompts.number must be 2 whole numbers"),
        ({"key": jax.random.split(jax.random.key(0))}, r"key must be one key, got \[2\]"),
        ({"temperature": np.nan}, "temperature must be numbers of 0 or more, got nan"),
        ({"temperature": [1.0, -1.0]}, r"temperature must be numbers of 0 or more, got \[1.0, -1"),
        ({"temperature": "hot"}, "temperature must be numbers of 0 or more, got 'hot'"),
    ],
)
def test_what_the_sampler_would_take_for_something_else_is_refused(changes, message):
    with pytest.raises(ValueError, match=f"sample: {message}"):
        sampled(**changes)


def test_a_mesh_of_other_axes_is_refused_by_name():
    mesh = jax.make_mesh((1, 1, 1), ("data", "fsdp", "tensor"))
    wanted = "Model: mesh must have axes of the type Auto, as those of rlvr_jax.parallel.make_mesh"
    with pytest.raises(ValueError, match=f"{wanted}, got Explicit, Explicit, Explicit"):
        replace(MODEL, mesh=mesh)


@pytest.mark.thorough
def test_each_row_of_a_pool_has_a_key():
    one = jax.random.key(0)
    pool = empty(MODEL, 2, 6)
    for name, call in {
        "empty": lambda: empty(MODEL, 2, 6, one),
        "fork": lambda: fork(pool, np.array([0, 1]), np.array([0, 0]), one),
        "reset": lambda: reset(MODEL, PARAMS, pool, [True, True], PROMPTS, [2, 1], key=one),
    }.items():
        with pytest.raises(ValueError, match=rf"{name}: key must be keys of the shape \[2\], got"):
            call()


def test_labels_of_groups_may_be_tuples():
    labels = [("maths", 1), ("maths", 2), ("maths", 1)]
    made = Rollouts.of_responses(np.zeros((3, 2), int), np.ones((3, 2), bool), np.zeros(3), labels)
    same(made.group, np.array([0, 1, 0], np.int32))


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["tokens", "rollout_id"])
def test_records_beyond_32_bits_are_refused(name):
    records = {"tokens": np.zeros((2, 2), int), "rollout_id": np.arange(2)}
    records[name] = records[name] + 2**33
    wanted = f"Rollouts.of_responses: {name} must be integers of 32 bits, got 858993459"
    with pytest.raises(ValueError, match=wanted):
        Rollouts.of_responses(
            mask=np.ones((2, 2), bool), reward=np.zeros(2), group=[0, 0], **records
        )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tokens": np.zeros((2, 2))}, r"tokens must be integers, got float64\[2, 2\]"),
        (
            {"tokens": [[1, 2], [3]]},
            r"tokens must be an array of numbers, rows .* got \[\[1",
        ),
        ({"mask": np.full((2, 2), 0.5)}, "mask must be bools, or 0 and 1, got 0.5"),
        ({"reward": ["a", "b"]}, r"reward must be an array of numbers, .* got \['a', 'b'\]"),
        ({"group": [[1], [2]]}, r"group must be a number, text or tuple for each row, got \[\[1\]"),
    ],
)
def test_records_that_are_no_numbers_are_refused(change, message):
    given = dict(tokens=np.zeros((2, 2), int), mask=np.ones((2, 2)), reward=[0, 1], group=[0, 0])
    with pytest.raises(ValueError, match=f"Rollouts.of_responses: {message}"):
        Rollouts.of_responses(**given | change)


def test_a_record_that_is_none_is_not_given():
    made = Rollouts.of_responses(np.zeros((2, 2), int), np.ones((2, 2)), [0, 1], [0, 0])
    same(made, Rollouts.of_responses(made.tokens, made.mask, [0, 1], [0, 0], old_logp=None))


def keys(number):
    return jax.random.split(jax.random.key(0), number)


THREE = np.array([[1, 2], [3, 4], [5, 0]])
COUNTS = [2, 2, 1]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda pool: empty(MODEL, 0, 6), "empty: rows must be at least 1, got 0"),
        (lambda pool: empty(MODEL, 3, 2049), "empty: slots must be at most the 2048 positions"),
        (
            lambda pool: empty(MODEL, 2, 6, group=np.array([2**33, 2**34])),
            "empty: group must be in -2147483648 … 2147483647, got 17179869184",
        ),
        (lambda pool: empty(MODEL, 2, 6, group=["a", "b"]), "empty: group must be 2 whole numbers"),
        (lambda pool: empty(MODEL, 3, 6, group=[0]), r"empty: group must be 3 .* got int64\[1\]"),
        (lambda pool: fork(pool, [3], [1], keys(1)), "fork: source must be in 0 … 2, got 3"),
        (lambda pool: fork(pool, [0], [7], keys(1)), "fork: cut must be in 0 … 6, got 7"),
        (lambda pool: fork(pool, [0, 1], [1], keys(2)), "fork: cut must be 2 whole numbers, one f"),
        (
            lambda pool: fork_into(pool, [0], [1], [3], keys(1)),
            "fork_into: into must be in 0 … 2, got 3",
        ),
        (
            lambda pool: fork_into(pool, [0], [1], [1], keys(1), group=[2**40]),
            "fork_into: group must be in -2147483648 … 2147483647, got 1099511627776",
        ),
        (lambda pool: retire(pool, [0, 2]), r"retire: rows must be 3 bools, .* got int64\[2\]"),
        (lambda pool: resume(pool, [0, 1, 1]), r"resume: rows must be 3 bools, .* got int64\[3\]"),
        (
            lambda pool: reset(MODEL, PARAMS, pool, [0], THREE, COUNTS, key=keys(3)),
            r"reset: rows must be 3 bools",
        ),
        (
            lambda pool: prefill(MODEL, PARAMS, pool, [[11, 2], [3, 4], [5, 0]], COUNTS),
            "prefill: tokens must be in 0 … 10, got 11",
        ),
        (
            lambda pool: prefill(MODEL, PARAMS, pool, [[1, 2], [3]], [2, 1, 0]),
            r"prefill: tokens must be integers \[R, L\], right-padded, got object\[2\]",
        ),
        (
            lambda pool: prefill(MODEL, PARAMS, pool, THREE[:2], COUNTS),
            "prefill: tokens must have a row for each of 3, got 2",
        ),
        (
            lambda pool: prefill(MODEL, PARAMS, pool, THREE, [3, 1, 1]),
            "prefill: count must be in 0 … 2, got 3",
        ),
        (lambda pool: decode(MODEL, PARAMS, pool, 1, None, ()), "decode: sampling must be a Samp"),
        (
            lambda pool: decode(MODEL, PARAMS, pool, 1, Sampling(), None),
            "decode: stop_tokens must be a sequence of ids, got None",
        ),
        (
            lambda pool: decode(MODEL, PARAMS, pool, -1, Sampling(), ()),
            "decode: steps must be at least 0, got -1",
        ),
        (
            lambda pool: decode(MODEL, PARAMS, pool, 1, Sampling(), (), temperature=-1.0),
            "decode: temperature must be numbers of 0 or more, got -1.0",
        ),
        (
            lambda pool: probe(MODEL, PARAMS, pool, THREE, [2]),
            r"probe: count must be 3 whole numbers, one for each row, got int64\[1\]",
        ),
    ],
)
def test_what_a_pool_would_take_for_something_else_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(empty(MODEL, 3, 6))


@pytest.mark.thorough
def test_what_pads_the_tokens_of_rows_is_not_looked_at():
    pool = empty(MODEL, 3, 6)
    padded = np.where(np.arange(2) < np.array(COUNTS)[:, None], THREE, -1)
    one, other = (prefill(MODEL, PARAMS, pool, tokens, COUNTS) for tokens in (padded, THREE))
    same(one.length, other.length)
    same(one.tokens[:2], other.tokens[:2])
