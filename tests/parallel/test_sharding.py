"""The mesh's text form, and a step of the model on meshes of eight host devices."""

import re

import jax
import jax.numpy as jnp
import pytest
from numpy.testing import assert_allclose

from rlvr_jax.parallel import make_mesh, parameter_shardings, row_sharding
from rlvr_jax.policy import Model, named_config

# float32 sums of at most 64 terms in another order
TOLERANCE = 1e-5


@pytest.mark.parametrize(
    ("spec", "shape"),
    [("", (8, 1, 1)), ("data=2,fsdp=4", (2, 4, 1)), ("tensor=4, data=2", (2, 1, 4))],
)
def test_a_mesh_is_read_from_its_text(spec, shape):
    assert tuple(make_mesh(spec).shape.values()) == shape


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("model=8", "axis=size pairs of data, fsdp, tensor, got 'model=8'"),
        ("data=8,data=1", "axis=size pairs"),
        ("data=x", "size of data must be a positive integer, got 'x'"),
        ("data=3", "must multiply to the 8 devices, got 'data=3'"),
    ],
)
def test_a_mesh_that_cannot_be_is_refused(spec, message):
    with pytest.raises(ValueError, match=message):
        make_mesh(spec)


def test_a_model_that_the_mesh_does_not_divide_is_refused():
    with pytest.raises(ValueError, match="tensor must divide vocab = 13"):
        parameter_shardings(named_config("tiny", vocab_size=13), make_mesh("tensor=8"))


@pytest.mark.parametrize("spec", ["data=8", "fsdp=8", "data=2,tensor=4"])
def test_sharded_parameters_give_the_hidden_states_of_one_device(spec):
    model = Model(named_config("tiny", vocab_size=16, qkv_bias=True, tied=False))
    params = model.init(jax.random.key(0))
    tokens = jax.random.randint(jax.random.key(1), (8, 5), 0, 16)
    expected = model.hidden(params, tokens)
    mesh = make_mesh(spec)
    shardings = parameter_shardings(model.config, mesh)
    assert jax.tree.structure(shardings) == jax.tree.structure(params)
    sharded = jax.device_put(params, shardings)
    hidden = jax.jit(model.hidden)(sharded, jax.device_put(tokens, row_sharding(mesh)))
    scale = float(jnp.abs(expected).max())
    assert_allclose(hidden, expected, atol=TOLERANCE * scale)


@pytest.mark.parametrize(
    ("experts", "inner", "own"),
    [
        (8, 22, (3, 1, 22, 16)),
        (2, 24, (3, 1, 6, 16)),
        (2, 22, (3, 1, 22, 4)),
        (0, 24, (3, 3, 16)),
        (0, 20, (3, 10, 4)),
    ],
    ids=["by expert", "by inner axis", "by width", "dense, by mlp", "dense, by width"],
)
def test_outputs_lie_over_fsdp_by_the_first_axis_that_is_divided(experts, inner, own):
    mixed = dict(num_experts=experts, experts_per_token=1) if experts else {}
    sizes = dict(width=16, num_layers=3, mlp_width=inner, num_heads=4, num_kv_heads=2, head_size=8)
    config = named_config("tiny", vocab_size=16, **sizes, **mixed)
    layers = parameter_shardings(config, make_mesh("fsdp=4,tensor=2"))["layers"]
    whole = (3, experts, inner, 16) if experts else (3, inner, 16)
    assert layers["mlp_output"].shard_shape(whole) == own
    whole = (3, experts, 16, inner) if experts else (3, 16, inner)
    part = (3, experts // 2, 4, inner) if experts else (3, 4, inner // 2)
    assert layers["gate"].shard_shape(whole) == part
    assert layers["attention_output"].shard_shape((3, 32, 16)) == (3, 4, 16)
    assert layers["query"].shard_shape((3, 16, 32)) == (3, 4, 16)


@pytest.mark.thorough
def test_what_the_backward_pass_keeps_of_a_layer_lies_over_tensor():
    config = named_config("tiny", vocab_size=16, width=32, num_layers=6, remat="layers")
    params = Model(config).init(jax.random.key(0))
    tokens = jax.random.randint(jax.random.key(1), (8, 12), 0, 16)
    mesh = make_mesh("data=2,tensor=4")

    def gradient(model):
        return jax.jit(jax.grad(lambda params: jnp.sum(jnp.square(model.hidden(params, tokens)))))

    wanted = gradient(Model(config))(params)
    sharded = jax.device_put(params, parameter_shardings(config, mesh))
    program = gradient(Model(config, mesh=mesh)).lower(sharded).compile()
    # The streams before six layers: half of the rows, a quarter of the width.
    assert set(re.findall(r"f32\[6,4,12,(\d+)\]", program.as_text())) == {"8"}
    # Six layers of it: with the stream whole on every device they differed by 3e-5, too.
    for found, own in zip(*map(jax.tree.leaves, (program(sharded), wanted)), strict=True):
        assert_allclose(found, own, atol=10 * TOLERANCE * float(jnp.abs(own).max()))
