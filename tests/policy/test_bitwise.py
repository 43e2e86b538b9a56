"""A bitwise policy: the log-prob of a token has equal bits in the sampler and in every scorer."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import training_runs
from numpy.testing import assert_allclose, assert_array_equal

from rlvr_jax.parallel import make_mesh
from rlvr_jax.policy import LoraConfig, Model, ModelConfig, bitwise, score
from rlvr_jax.rollout import (
    Prompts,
    Sampling,
    decode,
    empty,
    prefill,
    sample,
    to_rollouts,
    verify,
)
from rlvr_jax.types import replace

SIZES = dict(
    vocab_size=30,
    width=64,
    num_layers=2,
    num_heads=4,
    num_kv_heads=2,
    head_size=16,
    mlp_width=96,
    bitwise=True,
)
KINDS = {
    "plain": {},
    "biases": dict(qk_norm=True, qkv_bias=True, tied=False),
    "adapters": dict(lora=LoraConfig(4, 32.0)),
    "windows": dict(
        sliding_window=5,
        sliding_layers=(0,),
        local_rope_theta=1e4,
        output_norms=True,
        unit_offset=True,
        scaled_embedding=True,
        logit_softcap=10.0,
        activation="gelu_tanh",
    ),
    "three heads a group": dict(num_heads=3, num_kv_heads=1, num_layers=6),
}
# Both sum hundreds of products in another order, in float64.
ROUNDING = 1e-11


@pytest.fixture(autouse=True, scope="module")
def products_have_equal_bits():
    """Without this property of XLA and the processor, no row has equal bits in two batches."""
    random = np.random.default_rng(0)
    rows, matrix = (jnp.asarray(random.normal(size=(s, 96)), jnp.float32) for s in (128, 96))
    few, many = (jax.jit(jnp.matmul)(rows[:number], matrix) for number in (64, 128))
    if np.any(np.asarray(few) != np.asarray(many[:64])):
        pytest.skip("a product of 64 rows has other bits than one of 128 on this processor")


def policy(seed=0, **changes):
    """A model, and weights that make it sure of some tokens."""
    model = Model(ModelConfig(**{**SIZES, **changes}))
    dtype = model.config.compute_dtype
    scaled = jax.jit(lambda key: jax.tree.map(lambda x: (4 * x).astype(dtype), model.init(key)))
    return model, scaled(jax.random.key(seed))


def prompts_of(random, count, width, **changes):
    return Prompts(
        random.integers(1, 30, (count, width)).astype(np.int32),
        random.integers(1, width + 1, count).astype(np.int32),
        np.arange(count, dtype=np.int32),
        np.zeros(count, np.int32),
        **changes,
    )


def drawn(model, params, prompts, samples, budget, temperature=1.0, at_once=None):
    rollouts = sample(
        model,
        params,
        prompts,
        jax.random.key(1),
        samples=samples,
        response_tokens=budget,
        sampling=Sampling(temperature),
        stop_tokens=[0],
        at_once=at_once,
    )
    return jax.tree.map(np.asarray, rollouts)


def scored(model, params, rollouts, **how):
    return jax.jit(lambda p, r: score(model, p, r, ("logp",), **how).logp)(params, rollouts)


def rows(rollouts, index):
    return jax.tree.map(lambda leaf: leaf[index], rollouts)


def assert_equal_bits(logp, rollouts):
    mask = np.asarray(rollouts.mask)
    assert mask.any()
    assert_array_equal(np.asarray(logp)[mask], np.asarray(rollouts.behaviour_logp)[mask])


@pytest.mark.parametrize(
    "kind",
    [
        kind if kind == "windows" else pytest.param(kind, marks=pytest.mark.thorough)
        for kind in KINDS
    ],
)
def test_all_scorers_have_the_bits_of_the_sampler(kind):
    model, params = policy(**KINDS[kind])
    rollouts = drawn(model, params, prompts_of(np.random.default_rng(0), 3, 9), 4, 20, 0.7)
    assert_equal_bits(scored(model, params, rollouts), rollouts)
    assert_equal_bits(scored(model, params, rollouts, shared=4), rollouts)
    some = np.array([7, 2, 11])
    assert_equal_bits(scored(model, params, rows(rollouts, some)), rows(rollouts, some))


def test_without_it_the_bits_differ():
    model, params = policy(bitwise=False)
    rollouts = drawn(model, params, prompts_of(np.random.default_rng(0), 3, 9), 4, 20, 0.7)
    logp = scored(model, params, rollouts)
    assert np.mean(np.asarray(logp != rollouts.behaviour_logp)[np.asarray(rollouts.mask)]) > 0.5


def test_a_slot_that_is_filled_again_has_the_bits_of_all_rows_at_once():
    model, params = policy()
    prompts = prompts_of(np.random.default_rng(0), 5, 17, temperature=0.7)
    refilled = drawn(model, params, prompts, 3, 25, at_once=4)
    assert_equal_bits(scored(model, params, refilled), refilled)
    assert_equal_bits(refilled.behaviour_logp, drawn(model, params, prompts, 3, 25))


@pytest.mark.thorough
def test_replies_of_tools_and_accepted_drafts_have_the_bits_of_the_scorer():
    model, params = policy()
    random = np.random.default_rng(2)
    prompts, budget = prompts_of(random, 6, 8), 24
    given = random.integers(1, 30, (6, 5)).astype(np.int32)
    counts = np.array([5, 0, 3, 1, 4, 2], np.int32)

    @jax.jit
    def turns(params, tokens, length):
        pool = empty(model, 6, 32, key=jax.random.split(jax.random.key(3), 6))
        pool = prefill(model, params, pool, tokens, length)
        pool = decode(model, params, pool, 6, Sampling(), [])
        pool = prefill(model, params, pool, given, counts)
        pool = decode(model, params, pool, 3, Sampling(), [])
        pool = verify(model, params, pool, given, counts, lambda logp, uniform: logp > -4)
        pool = decode(model, params, pool, 2, Sampling(), [])
        return to_rollouts(pool, tokens, budget, Sampling())

    rollouts = turns(params, *map(jnp.asarray, (prompts.tokens, prompts.length)))
    assert_equal_bits(scored(model, params, rollouts), rollouts)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
def test_random_shapes_have_equal_bits(seed):
    random = np.random.default_rng(seed)
    kv_heads, group = random.integers(1, 4), random.integers(1, 8)
    model, params = policy(
        width=int(8 * random.integers(1, 30)),
        num_layers=int(random.integers(1, 7)),
        num_heads=int(kv_heads * group),
        num_kv_heads=int(kv_heads),
        head_size=int(2 * random.integers(2, 40)),
        mlp_width=int(random.integers(8, 300)),
        vocab_size=int(random.integers(30, 900)),
    )
    count, samples = random.integers(1, 9), int(random.integers(1, 6))
    prompts = prompts_of(random, count, random.integers(1, 70), temperature=random.uniform(0.3, 2))
    at_once = int(random.integers(1, count * samples + 2)) if random.random() < 0.5 else None
    budget = int(random.integers(2, 90))
    rollouts = drawn(model, params, prompts, samples, budget, at_once=at_once)
    assert_equal_bits(scored(model, params, rollouts), rollouts)
    assert_equal_bits(scored(model, params, rollouts, shared=samples), rollouts)
    some = random.permutation(count * samples)[: random.integers(1, 6)]
    assert_equal_bits(scored(model, params, rows(rollouts, some)), rows(rollouts, some))


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["plain", "windows"])
def test_the_gradient_is_the_usual_one(kind):
    model, params = policy(**KINDS[kind], compute_dtype="float64")
    rollouts = drawn(model, params, prompts_of(np.random.default_rng(0), 3, 9), 4, 20, 0.7)
    usual = Model(replace(model.config, bitwise=False))

    def gradient(policy):
        def loss(params):
            ratio = jnp.exp(score(policy, params, rollouts).logp - rollouts.behaviour_logp)
            return jnp.sum(jnp.where(rollouts.mask, ratio, 0))

        return jax.jit(jax.grad(loss))(params)

    for own, other in zip(
        *(jax.tree.leaves(gradient(each)) for each in (model, usual)), strict=True
    ):
        assert_allclose(own, other, rtol=0, atol=ROUNDING * np.abs(other).max())


def test_sums_are_those_of_numpy():
    x = np.random.default_rng(0).normal(size=(3, 200))
    assert_allclose(bitwise.total(jnp.asarray(x)), x.sum(axis=-1), rtol=1e-13)


@pytest.mark.thorough
def test_a_run_has_a_ratio_of_exactly_one(tmp_path):
    for own in (True, False):
        changes = dict(bitwise=own, minibatches=2, micro_batches=2)
        lines = training_runs.on_brackets("grpo", tmp_path / str(own), **changes)
        ratios = [training_runs.values(lines, f"sampler_ratio/{end}") for end in ("min", "max")]
        assert {*ratios[0], *ratios[1]} == {1.0} if own else 1.0 not in ratios[1]
        assert training_runs.values(lines, "differing_fraction") == ([0.0, 0.0] if own else [])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (dict(num_experts=4, experts_per_token=2), "bitwise must be False for a model with expert"),
        (dict(compute_dtype="bfloat16"), "got True with num_experts None and bfloat16"),
    ],
)
def test_policies_without_these_forms_are_refused(changes, words):
    with pytest.raises(ValueError, match=words):
        ModelConfig(**{**SIZES, **changes})


def test_a_mesh_that_splits_weights_is_refused():
    mesh = make_mesh("fsdp=2", jax.devices()[:2])
    with pytest.raises(ValueError, match="a mesh of only data, got True on a cpu with"):
        Model(ModelConfig(**SIZES), mesh=mesh)
