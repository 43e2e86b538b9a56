"""Configurations of every family of decoders, and small policies of them."""

import jax
import jax.numpy as jnp
import numpy as np

from rlvr_jax.policy import Model, ModelConfig, RopeScaling

SIZE = dict(vocab_size=11, width=12, num_layers=2, num_heads=4, mlp_width=20)
FAMILIES = {
    "qwen2": dict(num_kv_heads=2, head_size=4, qkv_bias=True, tied=True, rope_theta=1e4),
    "qwen3": dict(num_kv_heads=1, head_size=6, qk_norm=True, tied=False, rope_theta=1e6),
    "llama": dict(
        num_kv_heads=4,
        head_size=4,
        tied=False,
        norm_epsilon=1e-2,
        rope_theta=5e2,
        rope_scaling=RopeScaling(8.0, 30),
    ),
    "gemma3": dict(
        num_kv_heads=2,
        head_size=6,
        qk_norm=True,
        rope_scaling=RopeScaling(4.0),
        activation="gelu_tanh",
        query_pre_attn_scalar=9,
        sliding_window=3,
        sliding_layers=(0,),
        local_rope_theta=1e2,
        output_norms=True,
        unit_offset=True,
        scaled_embedding=True,
        logit_softcap=2.0,
    ),
    "qwen3_moe": dict(
        num_kv_heads=2,
        head_size=4,
        qk_norm=True,
        tied=False,
        num_experts=5,
        experts_per_token=2,
        normalized_experts=True,
    ),
}
# No family has all options of the decoder. This one has all options of dense families.
EVERYTHING = {**FAMILIES["gemma3"], "qkv_bias": True, "tied": False, "logit_softcap": None}
EXPERTS = {**FAMILIES["qwen3_moe"], "normalized_experts": False}
CONFIGS = {**FAMILIES, "everything": EVERYTHING, "experts": EXPERTS}
LENGTH = 7

# float64 on both sides, some hundred roundings of 1e-16 on numbers of order one
EXACT = dict(rtol=1e-11, atol=1e-12)

# Compiled once for each model and shape, for all tests.
to_hidden, to_logits, extend = (
    jax.jit(function, static_argnums=0) for function in (Model.hidden, Model.logits, Model.extend)
)


def policy(name="everything", dtype="float64"):
    """A model and parameters without a zero or a one, so that every norm and bias counts."""
    model = Model(ModelConfig(**SIZE, **CONFIGS[name], compute_dtype=dtype))
    return model, parameters(model)


def parameters(model):
    random = np.random.default_rng(0)
    shapes = jax.eval_shape(model.init, jax.random.key(0))
    return jax.tree.map(
        lambda leaf: jnp.asarray(random.normal(0.3, 0.5, leaf.shape), leaf.dtype), shapes
    )


def tokens(rows=3, length=LENGTH):
    return jnp.asarray(np.random.default_rng(1).integers(0, 11, (rows, length)), jnp.int32)
