"""Logits against transformers' own implementation, on small random models of every family."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rlvr_jax.policy import Model, ModelConfig, RopeScaling, load, save

torch = pytest.importorskip("torch")

SIZE = dict(vocab_size=31, width=32, num_layers=3, num_heads=4, mlp_width=48, max_positions=128)
GEMMA = dict(
    qk_norm=True,
    activation="gelu_tanh",
    query_pre_attn_scalar=20,
    sliding_window=7,
    sliding_layers=(0, 2),
    local_rope_theta=1e3,
    rope_theta=1e5,
    output_norms=True,
    unit_offset=True,
    scaled_embedding=True,
)
EXPERTS = dict(qk_norm=True, num_experts=5, experts_per_token=2, tied=False)
CONFIGS = {
    "qwen2": dict(num_kv_heads=2, head_size=8, qkv_bias=True),
    "qwen2-one-kv-head": dict(num_kv_heads=1, head_size=6, qkv_bias=True, tied=False),
    "qwen3": dict(num_kv_heads=2, head_size=12, qk_norm=True, tied=False, rope_theta=1e6),
    "qwen3-one-kv-head": dict(num_kv_heads=1, head_size=10, qk_norm=True),
    "llama": dict(num_kv_heads=4, head_size=8, tied=False, norm_epsilon=1e-3),
    # wavelengths from 6 to 3000 positions around a pretraining of 16
    "llama3-rope": dict(num_kv_heads=1, head_size=16, rope_scaling=RopeScaling(8.0, 16)),
    "linear-rope": dict(num_kv_heads=2, head_size=6, rope_scaling=RopeScaling(4.0)),
    "gemma3": dict(num_kv_heads=1, head_size=12, **GEMMA),
    "gemma3-capped": dict(
        num_kv_heads=2, head_size=8, **GEMMA, logit_softcap=2.0, rope_scaling=RopeScaling(8.0)
    ),
    "qwen3-moe": dict(num_kv_heads=2, head_size=10, **EXPERTS),
    "qwen3-moe-normalized": dict(num_kv_heads=1, head_size=8, **EXPERTS, normalized_experts=True),
}
LENGTHS = np.array([40, 33, 9])

# float32 on both sides: some hundred roundings of 6e-8 on logits of a few units
SINGLE = dict(rtol=1e-5, atol=1e-5)


def policy(name):
    """A model and parameters that neither a norm nor a bias leaves alone."""
    model = Model(ModelConfig(**SIZE, **CONFIGS[name]))
    random = np.random.default_rng(0)
    shapes = jax.eval_shape(model.init, jax.random.key(0))
    params = jax.tree.map(lambda x: jnp.asarray(random.normal(0, 0.25, x.shape), x.dtype), shapes)
    return model, params


def tokens():
    return np.random.default_rng(2).integers(0, SIZE["vocab_size"], (3, LENGTHS.max()))


def transformers_model(folder):
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(
        str(folder), dtype=torch.float32, attn_implementation="eager"
    )


def transformers_logits(folder):
    seen = np.arange(LENGTHS.max()) < LENGTHS[:, None]
    with torch.no_grad():
        logits = transformers_model(folder)(
            torch.asarray(tokens()), attention_mask=torch.asarray(seen.astype(int))
        ).logits
    return logits.numpy(), seen


@pytest.mark.thorough
@pytest.mark.parametrize("name", CONFIGS)
def test_a_full_pass_gives_transformers_logits(name, tmp_path):
    model, params = policy(name)
    save(tmp_path, model, params)
    expected, seen = transformers_logits(tmp_path)
    logits = jax.jit(model.logits)(params, jnp.asarray(tokens()))
    assert np.std(expected) > 0.2
    assert_allclose(np.asarray(logits)[seen], expected[seen], **SINGLE)


@pytest.mark.slow
@pytest.mark.parametrize("name", CONFIGS)
def test_cached_decoding_gives_transformers_logits(name, tmp_path):
    model, params = policy(name)
    save(tmp_path, model, params)
    expected, seen = transformers_logits(tmp_path)
    slots = int(LENGTHS.max())
    prompt = jnp.asarray(LENGTHS - 5)
    extend = jax.jit(model.extend)
    positions = jnp.arange(slots)[None]
    positions = jnp.where(positions < prompt[:, None], positions, slots)
    caches = model.empty_caches(3, slots)
    hidden, caches = extend(params, caches, jnp.asarray(tokens()), positions)
    got = np.array(model.to_logits(params, hidden))
    params = model.unstacked(params)
    for step in range(5):
        at = np.asarray(prompt) + step
        feed = jnp.asarray(tokens()[np.arange(3), at])[:, None]
        hidden, caches = extend(params, caches, feed, jnp.asarray(at)[:, None])
        got[np.arange(3), at] = model.to_logits(params, hidden)[:, 0]
    assert_allclose(got[seen], expected[seen], **SINGLE)


@pytest.mark.thorough
@pytest.mark.parametrize("name", CONFIGS)
def test_what_transformers_saves_is_loaded_bit_by_bit(name, tmp_path):
    model, params = policy(name)
    save(tmp_path / "ours", model, params)
    transformers_model(tmp_path / "ours").save_pretrained(tmp_path / "theirs")
    loaded_model, loaded = load(tmp_path / "theirs")
    assert loaded_model.config == model.config
    for path, leaf in jax.tree.leaves_with_path(params):
        ours = loaded
        for key in path:
            ours = ours[key.key]
        assert_array_equal(ours, leaf)
