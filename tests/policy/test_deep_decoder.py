"""Decoders that are scanned, computed again or sharded have the results of the plain one."""

import re
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from decoder_families import (
    CONFIGS,
    EVERYTHING,
    EXACT,
    FAMILIES,
    SIZE,
    parameters,
    policy,
    to_logits,
    tokens,
)
from devices import NEEDS_EIGHT_DEVICES
from everyday import everyday
from numpy.testing import assert_allclose, assert_array_equal

from rlvr_jax.parallel import make_mesh, parameter_shardings, row_sharding
from rlvr_jax.policy import Model, ModelConfig, decoder, named_config


@pytest.mark.thorough
def test_bfloat16_computes_in_bfloat16_and_keeps_the_rest_in_float32():
    for name in ("experts", "everything"):
        model, params = policy(name, dtype="bfloat16")
        assert {str(leaf.dtype) for leaf in jax.tree.leaves(params)} == {"float32"}
        assert model.empty_caches(1, 2)[0].keys.dtype == jnp.bfloat16
        assert jax.eval_shape(model.hidden, params, tokens()).dtype == jnp.bfloat16
    logits = to_logits(model, params, tokens())
    assert logits.dtype == jnp.float32
    wide, _ = policy(dtype="float32")
    exact = to_logits(wide, params, tokens())
    # roundings of 2^-9, some tens of them in a row, against the spread of the logits
    assert np.abs(logits - exact).max() < 0.1 * np.std(exact)


def test_halves_of_a_head_change_places_by_a_product_too():
    config = named_config("tiny", 11, head_size=6)
    (table,) = decoder.rotary_tables(jnp.arange(5, dtype=jnp.int32)[None] * 7, config)
    x = jax.random.normal(jax.random.key(0), (2, 5, 3, 6))
    wanted = decoder.rotary(x, table)
    # a rounding of the two products and of their sum
    assert_allclose(decoder.rotary(x, table, by_product=True), wanted, rtol=0, atol=1e-6)
    assert float(jnp.abs(wanted - x).max()) > 1


@pytest.mark.slow
def test_the_gradient_of_a_bias_is_summed_in_float32():
    config = named_config("tiny", 11, compute_dtype="bfloat16", qkv_bias=True, num_layers=1)
    block = decoder.Block(config)
    x = jnp.ones((64, 144, config.width), jnp.bfloat16)
    positions = jnp.broadcast_to(jnp.arange(144, dtype=jnp.int32), x.shape[:2])
    tables = decoder.rotary_tables(positions, config)
    arguments = x, positions, tables, None, jnp.asarray(False)
    params = block.init(jax.random.key(0), *arguments)["params"]

    def total(bias):
        # Attention shares sum to one, so every value's bias reaches every token once.
        own = params | {"value_bias": bias, "attention_output": jnp.eye(config.width)}
        own |= {"mlp_output": jnp.zeros_like(params["mlp_output"])}
        return jnp.sum(block.apply({"params": own}, *arguments)[0].astype(jnp.float32))

    slope = jax.grad(total)(params["value_bias"])
    # To each of the two heads that share a value.
    assert_allclose(slope, 2 * 64 * 144, rtol=0.01)


def test_initial_parameters_are_small_matrices_unit_norms_and_zero_biases():
    model = Model(ModelConfig(**{**SIZE, "width": 64}, **FAMILIES["qwen2"]))
    params = jax.jit(model.init)(jax.random.key(0))
    layers = params["layers"]
    assert_array_equal(params["final_norm"], np.ones(64))
    assert_array_equal(layers["attention_norm"], np.ones((2, 64)))
    assert_array_equal(layers["query_bias"], np.zeros((2, 16)))
    # 2 · 64 · 20 draws: the deviation is known to 1.4 %
    assert_allclose(np.std(layers["gate"]), 0.02, rtol=0.08)
    assert not np.array_equal(layers["gate"][0], layers["gate"][1])
    assert {str(leaf.dtype) for leaf in jax.tree.leaves(params)} == {"float32"}


@pytest.mark.thorough
@pytest.mark.parametrize("num_layers, remat", [(2, "layers"), (5, "attention")])
def test_what_is_computed_again_changes_no_gradient(num_layers, remat):
    plain = ModelConfig(**{**SIZE, "num_layers": num_layers}, **EVERYTHING, compute_dtype="float64")
    params = parameters(Model(plain))

    def traced(config):
        def loss(params):
            return jnp.sum(jnp.square(Model(config).hidden(params, tokens())))

        return jax.jit(jax.grad(loss)).trace(params)

    kept, again = (traced(replace(plain, remat=kind)) for kind in ("none", remat))
    assert "remat" in str(again.jaxpr)
    assert "remat" not in str(kept.jaxpr)
    gradients = (jax.tree.leaves(x.lower().compile()(params)) for x in (again, kept))
    for leaf, expected in zip(*gradients, strict=True):
        assert_allclose(leaf, expected, **EXACT)


@pytest.mark.thorough
@pytest.mark.parametrize("name", everyday(["everything", "experts"], "everything"))
def test_a_deep_model_is_scanned_and_gives_what_its_unrolled_layers_give(name, monkeypatch):
    deep = {**SIZE, **CONFIGS[name], "num_layers": 5}
    model = Model(ModelConfig(**deep, compute_dtype="float64"))
    params = parameters(model)
    text = jax.jit(model.hidden).lower(params, tokens()).as_text()
    assert "while" in text
    scanned = model.hidden(params, tokens())
    monkeypatch.setattr(decoder, "MOST_UNROLLED_LAYERS", 5)
    assert_allclose(model.hidden(params, tokens()), scanned, **EXACT)


@pytest.mark.thorough
@NEEDS_EIGHT_DEVICES
@pytest.mark.parametrize(
    ("spec", "part"),
    [("fsdp=8", "512,4"), ("data=2,fsdp=4", "512,8"), ("fsdp=4,tensor=2", "256,8")],
)
def test_neither_embeddings_nor_their_gradient_are_whole_on_a_device(spec, part):
    """With a vocabulary of 150,000 they would take gigabytes on each device."""
    config = replace(named_config("tiny", vocab_size=512), tied=False)
    mesh = make_mesh(spec)
    model, shardings = Model(config, mesh=mesh), parameter_shardings(config, mesh)
    shapes = jax.eval_shape(model.init, jax.random.key(0))
    params = jax.tree.map(
        lambda x, own: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=own), shapes, shardings
    )
    tokens = jax.ShapeDtypeStruct((8, 16), jnp.int32, sharding=row_sharding(mesh))
    slope = jax.jit(
        jax.grad(lambda params, tokens: jnp.sum(model.hidden(params, tokens) ** 2)),
        out_shardings=shardings,
    )
    text = slope.lower(params, tokens).compile().as_text()
    assert set(re.findall(r"f32\[((?:512|256),\d+)\]", text)) == {part}
