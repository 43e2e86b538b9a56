"""Low-rank adapters: what they compute, what they leave alone, and PEFT's files."""

import json
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from devices import NEEDS_EIGHT_DEVICES
from jax.sharding import PartitionSpec
from numpy.testing import assert_allclose, assert_array_equal
from safetensors.numpy import load_file, save_file

from rlvr_jax import policy
from rlvr_jax.parallel import adapter_shardings, make_mesh, parameter_shardings
from rlvr_jax.policy import LoraConfig, Model, ModelConfig, lora

SIZE = dict(vocab_size=16, width=8, num_layers=2, num_heads=4, mlp_width=16, head_size=4)
BASE = Model(ModelConfig(**SIZE, num_kv_heads=2, qkv_bias=True, compute_dtype="float64"))
MODEL = Model(replace(BASE.config, lora=LoraConfig(rank=3, alpha=4.5)))
MATRICES = ("query", "key", "value", "attention_output", "gate", "up", "mlp_output")

# float64 on both sides, some tens of roundings of 1e-16 on numbers of order one
EXACT = dict(rtol=1e-11, atol=1e-12)

hidden = jax.jit(Model.hidden, static_argnums=0)


def random_like(tree, seed):
    random = np.random.default_rng(seed)
    return jax.tree.map(lambda x: jnp.asarray(random.normal(0, 0.4, x.shape), x.dtype), tree)


def parameters(model=MODEL):
    """A base and an adapter in which nothing is zero."""
    base = random_like(jax.eval_shape(BASE.init, jax.random.key(0)), 0)
    return base, random_like(jax.eval_shape(lambda: lora.init(model, jax.random.key(0))), 1)


def tokens():
    return jnp.asarray(np.random.default_rng(2).integers(0, 16, (3, 5)), jnp.int32)


def test_an_adapter_adds_its_product_to_the_matrix():
    base, adapter = parameters()
    summed = {**base, "layers": dict(base["layers"])}
    for name in MATRICES:
        a, b = (np.asarray(adapter["layers"][f"{name}_lora_{side}"]) for side in "ab")
        summed["layers"][name] = base["layers"][name] + 4.5 / 3 * a @ b
    expected = hidden(BASE, summed, tokens())
    assert_allclose(hidden(MODEL, lora.attach(base, adapter), tokens()), expected, **EXACT)
    merged = lora.merge(MODEL, lora.attach(base, adapter))
    assert jax.tree.structure(merged) == jax.tree.structure(base)
    assert_allclose(hidden(MODEL, merged, tokens()), expected, **EXACT)


def test_cached_decoding_goes_through_the_adapter():
    base, adapter = parameters()
    params = lora.attach(base, adapter)
    positions = jnp.broadcast_to(jnp.arange(5), (3, 5))
    states, _ = jax.jit(MODEL.extend)(
        MODEL.unstacked(params), MODEL.empty_caches(3, 5), tokens(), positions
    )
    assert_allclose(states, hidden(MODEL, params, tokens()), **EXACT)


def test_a_new_adapter_changes_nothing():
    base, _ = parameters()
    params = lora.attach(base, lora.init(MODEL, jax.random.key(3)))
    assert_array_equal(hidden(MODEL, params, tokens()), hidden(BASE, base, tokens()))


def test_a_new_adapter_is_uniform_within_one_over_the_root_of_the_inputs():
    wide = replace(MODEL.config, width=64, lora=LoraConfig(rank=16, alpha=1.0, targets=("gate",)))
    layers = lora.init(Model(wide), jax.random.key(0))["layers"]
    assert set(layers) == {"gate_lora_a", "gate_lora_b"}
    a = np.asarray(layers["gate_lora_a"])
    assert np.abs(a).max() <= 1 / 8
    # 2048 draws: the deviation of a uniform variable is known to about 1 %
    assert_allclose(np.std(a), 1 / 8 / np.sqrt(3), rtol=0.05)
    assert not np.array_equal(a[0], a[1])
    assert not np.any(layers["gate_lora_b"])


def test_the_reference_is_the_base_in_the_same_memory():
    base, adapter = parameters()
    reference, own = lora.detach(lora.attach(base, adapter))
    assert jax.tree.structure(reference) == jax.tree.structure(base)
    pairs = zip(jax.tree.leaves((reference, own)), jax.tree.leaves((base, adapter)), strict=True)
    assert all(ours is theirs for ours, theirs in pairs)
    assert lora.merge(MODEL, base) is base


def test_gradients_for_the_adapter_alone_are_those_of_the_whole():
    base, adapter = parameters()

    def loss(params):
        return jnp.sum(jnp.square(MODEL.hidden(params, tokens())))

    alone = jax.jit(jax.grad(lambda adapter: loss(lora.attach(base, adapter))))(adapter)
    whole = jax.jit(jax.grad(loss))(lora.attach(base, adapter))
    for name, leaf in alone["layers"].items():
        assert np.any(leaf != 0), name
        assert_allclose(leaf, whole["layers"][name], **EXACT)


def test_targets_are_the_ones_that_are_adapted():
    config = replace(MODEL.config, lora=LoraConfig(rank=2, alpha=1.0, targets=("value", "up")))
    adapter = lora.init(Model(config), jax.random.key(0))
    wanted = {f"{name}_lora_{side}" for name in ("value", "up") for side in "ab"}
    assert set(adapter["layers"]) == wanted


@pytest.mark.parametrize("family", [dict(num_experts=4, experts_per_token=2, tied=False), {}])
def test_a_family_without_biases_takes_adapters_on_its_attention(family):
    targets = LoraConfig(2, 3.0, ("query", "attention_output"))
    model = Model(
        ModelConfig(**SIZE, num_kv_heads=1, compute_dtype="float64", **family, lora=targets)
    )
    params = random_like(jax.eval_shape(model.init, jax.random.key(0)), 0)
    adapter = random_like(jax.eval_shape(lambda: lora.init(model, jax.random.key(0))), 1)
    adapted = lora.attach(params, adapter)
    states = hidden(model, adapted, tokens())
    assert_allclose(hidden(model, lora.merge(model, adapted), tokens()), states, **EXACT)
    assert np.abs(states - hidden(model, params, tokens())).max() > 1e-3


def test_saving_a_policy_merges_its_adapter(tmp_path):
    base, adapter = parameters()
    params = lora.attach(base, adapter)
    policy.save(tmp_path, MODEL, params)
    stored = load_file(tmp_path / "model.safetensors")["model.layers.1.mlp.up_proj.weight"]
    assert_array_equal(stored.T, lora.merge(MODEL, params)["layers"]["up"][1])


def single(tree):
    return jax.tree.map(lambda x: x.astype(jnp.float32), tree)


def test_an_adapter_survives_its_files_bit_by_bit(tmp_path):
    _, adapter = parameters()
    lora.save(tmp_path, MODEL, single(adapter), base_model="some/base")
    model, loaded = lora.load(tmp_path, BASE)
    assert model == MODEL
    assert jax.tree.structure(loaded) == jax.tree.structure(adapter)
    pairs = zip(jax.tree.leaves(loaded), jax.tree.leaves(single(adapter)), strict=True)
    for ours, theirs in pairs:
        assert_array_equal(ours, theirs)
    written = json.loads((tmp_path / "adapter_config.json").read_text())
    assert written["base_model_name_or_path"] == "some/base"


def test_names_and_layouts_are_those_of_peft(tmp_path):
    _, adapter = parameters()
    lora.save(tmp_path, MODEL, adapter, base_model="some/base")
    tensors = load_file(tmp_path / "adapter_model.safetensors")
    modules = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj"]
    modules += ["mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"]
    assert set(tensors) == {
        f"base_model.model.model.layers.{layer}.{module}.lora_{side}.weight"
        for layer in (0, 1)
        for module in modules
        for side in "AB"
    }
    stem = "base_model.model.model.layers.1.mlp.down_proj.lora_"
    assert_array_equal(tensors[f"{stem}A.weight"].T, adapter["layers"]["mlp_output_lora_a"][1])
    assert_array_equal(tensors[f"{stem}B.weight"].T, adapter["layers"]["mlp_output_lora_b"][1])


@pytest.mark.thorough
@NEEDS_EIGHT_DEVICES
def test_an_adapter_lies_on_the_mesh_as_its_matrices_do(tmp_path):
    base, adapter = parameters()
    lora.save(tmp_path, MODEL, single(adapter), base_model="some/base")
    mesh = make_mesh("fsdp=2,tensor=4")
    shardings = adapter_shardings(MODEL.config, mesh)
    model, loaded = lora.load(tmp_path, BASE, shardings)
    assert loaded["layers"]["query_lora_a"].sharding.spec == PartitionSpec(None, "fsdp", None)
    assert loaded["layers"]["query_lora_b"].sharding.spec == PartitionSpec(None, None, "tensor")
    params = lora.attach(
        jax.device_put(single(base), parameter_shardings(MODEL.config, mesh)), loaded
    )
    expected = hidden(model, lora.attach(single(base), single(adapter)), tokens())
    # float32 weights: sums of at most 16 terms in another order, on numbers of order one
    assert_allclose(hidden(model, params, tokens()), expected, atol=1e-5)


def edit(folder, **changes):
    path = folder / "adapter_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.thorough
@pytest.mark.parametrize(
    "change, message",
    [
        ({"use_dora": True}, "use_dora must be False, got True"),
        ({"use_rslora": True}, "use_rslora must be False, got True"),
        ({"alora_invocation_tokens": [1, 2]}, "alora_invocation_tokens must be None, got"),
        ({"exclude_modules": ["q_proj"]}, "exclude_modules must be None, got"),
        *(
            (
                {"init_lora_weights": name},
                f"init_lora_weights must not change the base .* got '{name}'",
            )
            for name in ("pissa", "pissa_niter_4", "olora", "corda", "loftq", "lora_ga")
        ),
        ({"use_qalora": True}, "use_qalora must be empty, as it is not supported, got True"),
        ({"layer_replication": [[0, 2]]}, r"layer_replication must be empty, .* got \[\[0, 2\]\]"),
        ({"of_tomorrow": {"a": 1}}, "of_tomorrow must be empty, .* got {'a': 1}"),
        ({"bias": "all"}, "bias must be 'none', got 'all'"),
        ({"peft_type": "IA3"}, "peft_type must be 'LORA', got 'IA3'"),
        ({"rank_pattern": {"q_proj": 4}}, "rank_pattern must be {}, got {'q_proj': 4}"),
        ({"modules_to_save": ["lm_head"]}, "modules_to_save must be None, got"),
        ({"target_modules": "all-linear"}, "target_modules must be a list of q_proj, k_proj"),
        ({"target_modules": ["q_proj", "c_attn"]}, "target_modules must be a list of q_proj"),
        ({"target_modules": [["q_proj"]]}, "target_modules must be a list of q_proj"),
        (dict(r=None, lora_alpha=None), ".*config.json must hold r, lora_alpha, found none"),
    ],
)
def test_an_adapter_that_is_not_built_is_refused(change, message, tmp_path):
    _, adapter = parameters()
    lora.save(tmp_path, MODEL, adapter, base_model="some/base")
    edit(tmp_path, **change)
    with pytest.raises(ValueError, match=f"lora.load: {message}"):
        lora.load(tmp_path, BASE)


def test_an_adapter_s_config_that_holds_nothing_is_refused(tmp_path):
    _, adapter = parameters()
    lora.save(tmp_path, MODEL, adapter, base_model="some/base")
    file = tmp_path / "adapter_config.json"
    file.write_text("{}")
    with pytest.raises(ValueError, match=f"{file} must hold r, lora_alpha, target_modules, found"):
        lora.load(tmp_path, BASE)
    file.write_text("")
    with pytest.raises(ValueError, match=f"{file} must hold a JSON object, got text with"):
        lora.load(tmp_path, BASE)


@pytest.mark.parametrize(
    "use",
    [
        lambda params: jax.eval_shape(BASE.hidden, params, tokens()),
        lambda params: lora.merge(BASE, params),
        lambda params: lora.init(BASE, jax.random.key(0)),
    ],
)
def test_an_adapter_of_a_model_that_names_none_is_refused(use):
    with pytest.raises(ValueError, match=r"config\.lora must be the .*, got None"):
        use(lora.attach(*parameters()))


def test_an_adapter_that_does_not_fit_is_refused(tmp_path):
    _, adapter = parameters()
    lora.save(tmp_path, MODEL, adapter, base_model="some/base")
    edit(tmp_path, r=2)
    with pytest.raises(ValueError, match=r"q_proj.lora_A.weight must have the shape \(2, 8\)"):
        lora.load(tmp_path, BASE)
    edit(tmp_path, r=3, target_modules=["q_proj"])
    with pytest.raises(ValueError, match="the weights must fit the model, got also"):
        lora.load(tmp_path, BASE)
    with pytest.raises(ValueError, match=r"must hold adapter_config\.json, found no such file"):
        lora.load(tmp_path / "absent", BASE)


@pytest.mark.slow
# peft asks transformers by a deprecated name
@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")
def test_peft_computes_the_same_logits_and_what_it_saves_is_loaded(tmp_path):
    torch = pytest.importorskip("torch")
    peft = pytest.importorskip("peft")
    from transformers import AutoModelForCausalLM

    narrow = Model(replace(MODEL.config, compute_dtype="float32"))
    base, adapter = (single(tree) for tree in parameters())
    policy.save(tmp_path / "base", narrow, base)
    lora.save(tmp_path / "adapter", narrow, adapter, base_model=tmp_path / "base")
    theirs = AutoModelForCausalLM.from_pretrained(str(tmp_path / "base"), dtype=torch.float32)
    adapted = peft.PeftModel.from_pretrained(theirs, str(tmp_path / "adapter"))
    with torch.no_grad():
        expected = adapted(torch.asarray(np.array(tokens(), np.int64))).logits.numpy()
    logits = narrow.logits(lora.attach(base, adapter), tokens())
    # float32 on both sides: some hundred roundings of 6e-8 on logits of a few units
    assert_allclose(logits, expected, rtol=1e-5, atol=1e-5)
    adapted.save_pretrained(str(tmp_path / "again"))
    model, loaded = lora.load(tmp_path / "again", Model(replace(narrow.config, lora=None)))
    assert model == narrow
    for name, leaf in adapter["layers"].items():
        assert_array_equal(loaded["layers"][name], leaf)


def test_a_tensor_that_is_missing_is_refused_by_name(tmp_path):
    _, adapter = parameters()
    lora.save(tmp_path, MODEL, adapter, base_model="some/base")
    tensors = load_file(tmp_path / "adapter_model.safetensors")
    name = "base_model.model.model.layers.1.mlp.up_proj.lora_B.weight"
    del tensors[name]
    save_file(tensors, tmp_path / "adapter_model.safetensors")
    with pytest.raises(ValueError, match=f"must hold {name}, found no such tensor"):
        lora.load(tmp_path, BASE)
