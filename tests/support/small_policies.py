"""Small policies of every family, with random parameters, and their files."""

import json

import jax
import jax.numpy as jnp
import numpy as np
from numpy.testing import assert_array_equal
from safetensors.numpy import load_file, save_file

from rlvr_jax.policy import (
    Model,
    ModelConfig,
    save,
)

SIZE = dict(vocab_size=11, width=12, num_layers=2, num_heads=4, mlp_width=20, max_positions=32)
CONFIGS = {
    "qwen2": ModelConfig(**SIZE, num_kv_heads=2, head_size=4, qkv_bias=True, tied=True),
    "qwen2-untied": ModelConfig(**SIZE, num_kv_heads=1, head_size=2, qkv_bias=True, tied=False),
    "qwen3": ModelConfig(**SIZE, num_kv_heads=1, head_size=6, qk_norm=True, tied=True),
    "qwen3-untied": ModelConfig(**SIZE, num_kv_heads=4, head_size=4, qk_norm=True, tied=False),
    "llama": ModelConfig(**SIZE, num_kv_heads=2, head_size=4, tied=False, rope_theta=5e5),
    "llama-tied": ModelConfig(**SIZE, num_kv_heads=1, head_size=8, tied=True, norm_epsilon=1e-5),
    "gemma3_text": ModelConfig(
        **SIZE,
        num_kv_heads=1,
        head_size=6,
        qk_norm=True,
        activation="gelu_tanh",
        sliding_window=3,
        sliding_layers=(0,),
        local_rope_theta=1e3,
        output_norms=True,
        unit_offset=True,
        scaled_embedding=True,
    ),
    "qwen3_moe": ModelConfig(
        **SIZE,
        num_kv_heads=2,
        head_size=4,
        qk_norm=True,
        tied=False,
        num_experts=4,
        experts_per_token=2,
    ),
}


def random_parameters(model, seed=0):
    """Parameters without a zero or a one, so that no norm or bias can be mistaken for none."""
    random = np.random.default_rng(seed)
    shapes = jax.eval_shape(model.init, jax.random.key(0))
    return jax.tree.map(
        lambda leaf: jnp.asarray(random.normal(0.2, 0.4, leaf.shape), leaf.dtype), shapes
    )


def policy(name):
    model = Model(CONFIGS[name])
    return model, random_parameters(model)


def assert_same(params, expected):
    assert jax.tree.structure(params) == jax.tree.structure(expected)
    for ours, theirs in zip(jax.tree.leaves(params), jax.tree.leaves(expected), strict=True):
        assert ours.dtype == theirs.dtype
        assert_array_equal(ours, theirs)


def shard(folder, num_shards=3):
    """Splits model.safetensors as Hugging Face does, with layers torn apart."""
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    files = [f"model-{i + 1:05}-of-{num_shards:05}.safetensors" for i in range(num_shards)]
    place = {key: files[i % num_shards] for i, key in enumerate(sorted(tensors))}
    for file in files:
        save_file({k: v for k, v in tensors.items() if place[k] == file}, folder / file)
    index = {"metadata": {}, "weight_map": place}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return files


def changed(folder, change):
    """A saved policy of Qwen2 whose tensors were changed."""
    model, params = policy("qwen2")
    save(folder, model, params)
    tensors = load_file(folder / "model.safetensors")
    save_file(change(tensors), folder / "model.safetensors")
    return params
