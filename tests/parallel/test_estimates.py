"""What is counted by hand: slices, models, the meshes that are chosen, work and bytes."""

import dataclasses
import math
from functools import partial

import jax
import jax.numpy as jnp
import pytest

from rlvr_jax.parallel.memory import sample_buffers, update_buffers
from rlvr_jax.parallel.plan import sample_mesh, train_mesh
from rlvr_jax.parallel.roofline import num_parameters, sample_work, score_work, update_work
from rlvr_jax.parallel.topologies import CHIPS, describe
from rlvr_jax.policy import LoraConfig, Model, cached, lora, named_config
from rlvr_jax.policy.parameters import parameter_shapes
from rlvr_jax.policy.published import PUBLISHED


@pytest.mark.parametrize(
    ("name", "layout", "devices"),
    [
        ("v5e-8", "v5e:2x4", 8),
        ("v5litepod-256", "v5e:16x16", 256),
        ("v6e-32", "v6e:4x8", 32),
        ("v5p-8", "v5p:2x2x1", 4),
        ("v4-128", "v4:4x4x4", 64),
        ("tpu7x-8", "tpu7x:2x2x1", 8),
        ("cpu:8", "cpu:8", 8),
    ],
)
def test_topologies_have_the_names_that_users_know(name, layout, devices):
    topology = describe(name)
    assert (topology.layout, topology.num_devices) == (layout, devices)
    assert topology.hbm_bytes > 0


@pytest.mark.parametrize("chip", CHIPS)
def test_layouts_have_as_many_chips_as_they_say(chip):
    assert all(math.prod(layout) == chips for chips, layout in CHIPS[chip].layouts.items())


@pytest.mark.parametrize("name", PUBLISHED)
def test_matrices_are_counted_by_hand(name):
    shapes = dict(parameter_shapes(PUBLISHED[name]))
    matrices = [x for x in shapes.pop("layers").values() if x.ndim >= 3]
    matrices += [x for x in shapes.values() if x.ndim == 2]
    assert sum(x.size for x in matrices) == num_parameters(PUBLISHED[name])


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("qwen2.5-0.5b", 0.49),
        ("qwen2.5-7b", 7.62),
        ("qwen2.5-32b", 32.8),
        ("qwen3-8b", 8.19),
        ("qwen3-30b-a3b", 30.53),
    ],
)
def test_models_have_the_sizes_of_their_cards(name, billions):
    assert num_parameters(PUBLISHED[name]) / 1e9 == pytest.approx(billions, rel=0.01)


def test_chosen_meshes_fill_the_topology_and_divide_the_model():
    for name, config in PUBLISHED.items():
        for slice_name in ("v5e-8", "v5e-256", "v5p-64", "v6e-16"):
            topology = describe(slice_name)
            trained = train_mesh(config, topology, 8192, 9216, 16)
            for spec in (trained, sample_mesh(config, topology, 512, 16)):
                sizes = dict(part.split("=") for part in spec.split(","))
                assert math.prod(map(int, sizes.values())) == topology.num_devices, name
                # Where the weights want it, devices of a sampler share a key/value head.
                whole = spec != trained and config.num_experts
                heads = config.num_heads if whole else config.num_kv_heads
                assert heads % int(sizes.get("tensor", 1)) == 0
                assert config.width % int(sizes.get("fsdp", 1)) == 0


@pytest.mark.parametrize(
    ("name", "mesh"),
    [
        ("v5e-128", "data=16,tensor=8"),
        ("v6e-32", "data=4,tensor=8"),  # by the state of training beside the weights
        ("v5p-16", "data=2,tensor=4"),
    ],
)
def test_a_sampler_takes_more_of_tensor_before_it_gathers_weights(name, mesh):
    """Four key/value heads, which two devices share where the weights need eight of them."""
    shape = dataclasses.replace(PUBLISHED["qwen3-30b-a3b"], compute_dtype="bfloat16")
    assert sample_mesh(shape, describe(name), 512, 16) == mesh


@pytest.mark.parametrize(
    ("prompts", "mesh"),
    [
        (512, "data=256"),
        (128, "data=128,tensor=2"),
        (64, "data=64,tensor=4"),  # two devices share a key/value head
        (100, "data=256"),  # nothing divides them
    ],
)
def test_a_sampler_takes_more_of_tensor_where_devices_outnumber_prompts(prompts, mesh):
    shape = dataclasses.replace(PUBLISHED["qwen2.5-1.5b"], compute_dtype="bfloat16")
    assert sample_mesh(shape, describe("v5e-256"), prompts, 16) == mesh


def test_more_is_split_over_tensor_where_a_reference_is_kept():
    options = dict(remat="layers", compute_dtype="bfloat16")
    shape = dataclasses.replace(PUBLISHED["qwen2.5-7b"], **options)
    chosen = [train_mesh(shape, describe("v5e-16"), 8192, 9216, held) for held in (12, 16)]
    # As compiled beside a reference the update took 16.5 of 15.8 GiB with tensor=2, 15.2 with 4.
    assert chosen == ["fsdp=8,tensor=2", "fsdp=4,tensor=4"]


def test_more_is_split_over_tensor_where_devices_outnumber_rows():
    shape, topology = PUBLISHED["qwen2.5-1.5b"], describe("v5e-256")
    chosen = [train_mesh(shape, topology, rows, 4024, 12) for rows in (256, 128, 100)]
    # The last one fits no mesh, which is said when the settings are checked.
    assert chosen == ["fsdp=256", "fsdp=128,tensor=2", "fsdp=256"]


def test_work_by_hand_is_what_the_compiler_counts():
    config = named_config("small", vocab_size=512, qkv_bias=True)
    rows, length = 4, 64
    tokens = jax.ShapeDtypeStruct((rows, length), "int32")

    def logits(params, tokens):
        return Model(config).logits(params, tokens)

    program = jax.jit(logits).lower(parameter_shapes(config), tokens).compile()
    counted = program.cost_analysis()["flops"]
    shape = dict(rows=rows, prompt=0, response=length, parts=1)
    work = update_work(config, micro_batches=1, devices=1, forward_first=False, **shape)
    # Forward once, backward twice; attention and logits are computed once more in the backward
    # pass of the trainer. What the compiler counts beside products is within a tenth of them.
    assert 3 * counted * 0.9 <= work.flops <= 4 * counted
    sampled = sample_work(config, prompts=0, **shape)
    assert sampled.flops == pytest.approx(counted, rel=0.1)


def test_below_adapters_weights_get_no_gradient():
    config = named_config("small", vocab_size=512)
    adapted = dataclasses.replace(config, lora=LoraConfig(rank=2, alpha=4))
    rows, length = 4, 64
    tokens = jax.ShapeDtypeStruct((rows, length), "int32")
    base, model = parameter_shapes(config), Model(adapted)
    adapters = jax.eval_shape(partial(lora.init, model), jax.random.key(0))

    def total(adapters, base, tokens):
        return jnp.sum(jnp.sin(model.logits(lora.attach(base, adapters), tokens)))

    program = jax.jit(jax.grad(total)).lower(adapters, base, tokens).compile()
    counted = program.cost_analysis()["flops"]
    shape = dict(rows=rows, prompt=0, response=length, parts=1)
    shape |= dict(micro_batches=1, devices=1, forward_first=False)
    work, whole = (update_work(each, **shape) for each in (adapted, config))
    # The trainer computes attention and logits once more in the backward pass.
    assert 0.9 * counted <= work.flops <= 1.5 * counted
    assert 2 * work.flops < 1.5 * whole.flops
    sizes = [
        update_buffers(each, rows=rows, tokens=length, parts=1, devices=1)[
            "gradient, and that of a micro-batch"
        ]
        for each in (adapted, config)
    ]
    trained = sum(x.size for x in jax.tree.leaves(adapters))
    assert sizes == [2 * 4 * trained, 2 * 4 * num_parameters(config)]


@pytest.mark.parametrize("flash", [False, True])
def test_numbers_take_the_bytes_of_the_dtype_that_is_computed_with(flash):
    narrow, wide = (
        dataclasses.replace(named_config("small", vocab_size=512), compute_dtype=dtype)
        for dtype in ("bfloat16", "float32")
    )
    shape = dict(rows=4, prompt=2048, response=2048, parts=1)
    for work in (
        partial(score_work, micro_batches=1, flash=flash, **shape),
        partial(sample_work, prompts=2, **shape),
    ):
        assert work(narrow).flops == work(wide).flops
        assert work(narrow).bytes < work(wide).bytes < 2 * work(narrow).bytes
    counted = partial(sample_buffers, rows=4, prompts=2, prompt=64, response=64, parts=1)
    for name, twice in (
        ("cache", True),
        ("cache of the prompts", True),
        ("activations of the prompts", True),
        ("logits", False),
    ):
        assert counted(wide)[name] == (2 if twice else 1) * counted(narrow)[name]


def test_a_long_cache_is_counted_as_far_as_it_is_written(monkeypatch):
    config = named_config("small", vocab_size=512)

    def flops():
        shape = dict(rows=2, prompts=1, prompt=512, response=7168, parts=1)
        return sample_work(config, **shape).flops

    written = flops()
    monkeypatch.setattr(cached, "SLOTS", 8192)
    unread = sum(7168 - 1024 * (place // 1024 + 1) for place in range(7168))
    pairs = config.num_layers * 2 * config.num_heads * unread
    assert flops() - written == pytest.approx(4 * pairs * config.head_size)


@pytest.mark.parametrize(
    ("rows", "visited"),
    [(1, 8), (2, 8 + 120 * 8 / 128), (4096, 128)],  # the second token's are apart from the first's
)
def test_of_experts_those_that_tokens_visit_are_read(rows, visited):
    config = dataclasses.replace(PUBLISHED["qwen3-30b-a3b"], compute_dtype="bfloat16")
    work = sample_work(config, rows=rows, prompts=0, prompt=0, response=1, parts=1)
    expert, router, attention = 3 * 2048 * 768, 2048 * 128, 2048 * 128 * (2 * 32 + 2 * 4)
    layer = 2 * (attention + router + visited * expert)
    activations = 2 * rows * (8 * 2048 + 4 * 8 * 768)
    scores, cache = rows * 32 * 2 * (4 + 2), 2 * rows * 2 * 4 * 128
    head = 2 * 2048 * 151936 + 4 * 4 * rows * 151936
    assert work.bytes == pytest.approx(48 * (layer + activations + scores + cache) + head)
    products = attention + router + 8 * expert + 2 * 32 * 128  # one slot is seen
    assert work.flops == pytest.approx(2 * rows * (48 * products + 2048 * 151936))
