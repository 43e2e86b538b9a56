"""Weights in Hugging Face's layout, in both directions."""

import json
from dataclasses import replace

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from devices import NEEDS_EIGHT_DEVICES
from jax.sharding import NamedSharding, PartitionSpec, SingleDeviceSharding
from numpy.testing import assert_array_equal
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer, models
from transformers import AutoConfig, AutoTokenizer, PreTrainedTokenizerFast

from rlvr_jax.parallel import make_mesh
from rlvr_jax.policy import (
    Model,
    ModelConfig,
    load,
    parameter_table,
    save,
    tokenizer,
    weights,
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
TENSORS = {
    "embed_tokens.weight": (11, 12),
    "norm.weight": (12,),
    "layers.{}.input_layernorm.weight": (12,),
    "layers.{}.post_attention_layernorm.weight": (12,),
    "layers.{}.self_attn.q_proj.weight": (24, 12),
    "layers.{}.self_attn.k_proj.weight": (6, 12),
    "layers.{}.self_attn.v_proj.weight": (6, 12),
    "layers.{}.self_attn.o_proj.weight": (12, 24),
    "layers.{}.self_attn.q_norm.weight": (6,),
    "layers.{}.self_attn.k_norm.weight": (6,),
    "layers.{}.mlp.gate_proj.weight": (20, 12),
    "layers.{}.mlp.up_proj.weight": (20, 12),
    "layers.{}.mlp.down_proj.weight": (12, 20),
}

every_config = pytest.mark.parametrize("name", CONFIGS)


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


def small_tokenizer():
    words = Tokenizer(models.WordLevel({"<eos>": 0, "<pad>": 1, "a": 2}, unk_token="<eos>"))
    return PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<eos>", pad_token="<pad>")


@pytest.mark.thorough
@every_config
def test_what_is_saved_is_loaded_bit_by_bit(name, tmp_path):
    model, params = policy(name)
    save(tmp_path / "first", model, params)
    loaded_model, loaded = load(tmp_path / "first")
    assert loaded_model == model
    assert_same(loaded, params)
    save(tmp_path / "second", loaded_model, loaded)
    for file in ("config.json", "model.safetensors"):
        first, second = ((tmp_path / run / file).read_bytes() for run in ("first", "second"))
        assert first == second


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


@pytest.mark.thorough
@every_config
def test_shards_are_loaded_as_one_file_is(name, tmp_path):
    model, params = policy(name)
    save(tmp_path, model, params)
    shard(tmp_path)
    loaded_model, loaded = load(tmp_path)
    assert loaded_model == model
    assert_same(loaded, params)


@pytest.mark.thorough
@every_config
def test_large_policies_are_saved_in_shards(name, tmp_path):
    model, params = policy(name)
    save(tmp_path / "whole", model, params)
    save(tmp_path / "shards", model, params, max_shard_bytes=2_000)
    files = sorted(path.name for path in (tmp_path / "shards").glob("*.safetensors"))
    assert len(files) > 2
    count = len(files)
    assert files == [f"model-{i + 1:05}-of-{count:05}.safetensors" for i in range(count)]
    index = json.loads((tmp_path / "shards" / "model.safetensors.index.json").read_text())
    whole = load_file(tmp_path / "whole" / "model.safetensors")
    sizes = {key: array.nbytes for key, array in whole.items()}
    assert index["metadata"]["total_size"] == sum(sizes.values())
    for file in files:
        shard = load_file(tmp_path / "shards" / file)
        assert {key for key, place in index["weight_map"].items() if place == file} == set(shard)
        assert sum(array.nbytes for array in shard.values()) <= 2_000 or len(shard) == 1
        for key, array in shard.items():
            assert_array_equal(array, whole.pop(key))
    assert not whole
    assert_same(load(tmp_path / "shards")[1], params)


@pytest.mark.thorough
@NEEDS_EIGHT_DEVICES
@pytest.mark.parametrize("name", ["qwen2-untied", "gemma3_text", "qwen3_moe"])
@pytest.mark.parametrize("spec", ["fsdp=2,tensor=2,data=2", "data=8"])
def test_weights_are_read_into_their_sharding_and_written_from_it(spec, name, tmp_path):
    model, params = policy(name)
    save(tmp_path / "first", model, params)
    mesh = make_mesh(spec)
    # axes that the mesh divides; the small vocabulary and the head are on every device
    split = {"embed": "fsdp", "mlp": "tensor", "expert": "tensor", "heads": "tensor"}

    def shardings(config):
        tree = {"layers": {}}
        for entry in parameter_table(config):
            axes = [None] * (entry.path[0] == "layers") + [split.get(axis) for axis in entry.axes]
            node = tree["layers"] if entry.path[0] == "layers" else tree
            node[entry.path[-1]] = NamedSharding(mesh, PartitionSpec(*axes))
        return tree

    _, loaded = load(tmp_path / "first", sharding=shardings)
    assert_same(loaded, params)
    places = zip(jax.tree.leaves(loaded), jax.tree.leaves(shardings(model.config)), strict=True)
    assert all(leaf.sharding.is_equivalent_to(wanted, leaf.ndim) for leaf, wanted in places)
    save(tmp_path / "second", model, loaded)
    first, second = (
        (tmp_path / run / "model.safetensors").read_bytes() for run in ("first", "second")
    )
    assert first == second


@NEEDS_EIGHT_DEVICES
def test_no_more_of_a_tensor_is_read_than_a_device_holds(tmp_path, monkeypatch):
    model, params = policy("llama")
    save(tmp_path, model, params)
    whole = weights.stored_tensors(tmp_path)
    read = []

    def recording(name, tensor):
        def part(index):
            array = tensor.read(index)
            read.append((name, array.shape))
            return array

        return tensor._replace(read=part)

    recorded = {name: recording(name, tensor) for name, tensor in whole.items()}
    monkeypatch.setattr(weights, "stored_tensors", lambda _: recorded)
    one = SingleDeviceSharding(jax.devices()[0])
    columns = NamedSharding(make_mesh("fsdp=4,data=2"), PartitionSpec(None, "fsdp"))
    shardings = {**jax.tree.map(lambda _: one, params), "unembedding": columns}
    load(tmp_path, sharding=lambda _: shardings)
    shapes = [shape for name, shape in read if name == "lm_head.weight"]
    # each of the four parts once, though two devices hold it
    assert shapes == [(11, 3)] * 4


def test_saving_replaces_a_sharded_policy(tmp_path):
    model, params = policy("llama")
    save(tmp_path, model, random_parameters(model, seed=1))
    shard(tmp_path)
    (tmp_path / "generation_config.json").write_text("{}")
    save(tmp_path, model, params)
    assert_same(load(tmp_path)[1], params)
    files = {path.name for path in tmp_path.iterdir()}
    assert files == {"config.json", "model.safetensors"}


def test_saving_leaves_nothing_of_another_tokenizer(tmp_path):
    model, params = policy("llama")
    first = small_tokenizer()
    first.chat_template = "{{ messages[0]['content'] }}"
    save(tmp_path, model, params, first)
    # What servers with an older transformers know, too.
    written = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert written["tokenizer_class"] == "PreTrainedTokenizerFast"
    save(tmp_path, model, params, small_tokenizer())
    assert tokenizer(tmp_path).chat_template is None
    save(tmp_path, model, params)
    assert not list(tmp_path.glob("*token*"))


def test_the_generation_config_and_the_chat_template_travel_along(tmp_path):
    model, params = policy("llama")
    words = small_tokenizer()
    words.chat_template = "{{ messages[0]['content'] }}"
    save(tmp_path / "first", model, params, words)
    text = '{"eos_token_id": [0, 1], "temperature": 0.6}'
    (tmp_path / "first" / "generation_config.json").write_text(text)
    model, params = load(tmp_path / "first")
    assert model.stop_tokens == (0, 1)
    save(tmp_path / "second", model, params, tokenizer(tmp_path / "first"))
    assert (tmp_path / "second" / "generation_config.json").read_text() == text
    assert tokenizer(tmp_path / "second").chat_template == words.chat_template
    assert load(tmp_path / "second")[0] == model


@pytest.mark.parametrize(
    "text, stops",
    [(None, ()), ("{}", ()), ('{"eos_token_id": null}', ()), ('{"eos_token_id": 3}', (3,))],
)
def test_stop_tokens_are_those_of_the_generation_config(text, stops):
    assert Model(CONFIGS["llama"], text).stop_tokens == stops


@pytest.mark.parametrize(
    "text, message",
    [
        ("[1]", "must hold a JSON object, got a list"),
        ('{"eos_token_id": "<eos>"}', ": eos_token_id must be an id or a list of ids, got '<eos>'"),
        ('{"eos_token_id": [1, 2.0]}', r": eos_token_id must be an id .* got \[1, 2.0\]"),
    ],
)
def test_stop_tokens_that_are_no_ids_are_refused(text, message):
    with pytest.raises(ValueError, match=rf"generation_config\.json ?{message}"):
        _ = Model(CONFIGS["llama"], text).stop_tokens


def test_names_and_layouts_are_hugging_face_s(tmp_path):
    model, params = policy("qwen3")
    save(tmp_path, model, params)
    expected = {f"model.{key.format(i)}": size for key, size in TENSORS.items() for i in (0, 1)}
    tensors = load_file(tmp_path / "model.safetensors")
    assert {key: array.shape for key, array in tensors.items()} == expected
    assert {str(array.dtype) for array in tensors.values()} == {"float32"}


@pytest.mark.parametrize("layer", [0, 1])
def test_a_projection_is_saved_transposed_and_layer_by_layer(layer, tmp_path):
    model, params = policy("llama")
    save(tmp_path, model, params)
    tensors = load_file(tmp_path / "model.safetensors")
    gate = tensors[f"model.layers.{layer}.mlp.gate_proj.weight"]
    assert_array_equal(gate.T, params["layers"]["gate"][layer])


@pytest.mark.thorough
@every_config
def test_the_table_names_every_parameter_and_its_axes_once(name):
    model, params = policy(name)
    table = parameter_table(model.config)
    paths = {
        tuple(key.key for key in path): leaf for path, leaf in jax.tree.leaves_with_path(params)
    }
    assert sorted(entry.path for entry in table) == sorted(paths)
    assert len({entry.name for entry in table}) == len(table)
    for entry in table:
        assert len(entry.axes) == paths[entry.path].ndim - (entry.path[0] == "layers")


def test_an_expert_is_a_tensor_of_its_own(tmp_path):
    model, params = policy("qwen3_moe")
    save(tmp_path, model, params)
    tensors = load_file(tmp_path / "model.safetensors")
    down = tensors["model.layers.1.mlp.experts.2.down_proj.weight"]
    assert_array_equal(down.T, params["layers"]["mlp_output"][1, 2])
    assert_array_equal(tensors["model.layers.0.mlp.gate.weight"].T, params["layers"]["router"][0])


def test_bfloat16_weights_are_read_without_rounding_again(tmp_path):
    model, params = policy("llama")
    save(tmp_path, model, params)
    tensors = load_file(tmp_path / "model.safetensors")
    rounded = {key: array.astype(jnp.bfloat16) for key, array in tensors.items()}
    save_file(rounded, tmp_path / "model.safetensors")
    expected = jax.tree.map(lambda x: np.asarray(x).astype(jnp.bfloat16).astype("float32"), params)
    assert_same(load(tmp_path)[1], expected)


def test_an_unembedding_beside_a_tied_embedding_is_passed_over(tmp_path):
    model, params = policy("qwen2")
    save(tmp_path, model, params)
    tensors = load_file(tmp_path / "model.safetensors")
    tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"]
    save_file(tensors, tmp_path / "model.safetensors")
    assert_same(load(tmp_path)[1], params)


def changed(folder, change):
    """A saved policy of Qwen2 whose tensors were changed."""
    model, params = policy("qwen2")
    save(folder, model, params)
    tensors = load_file(folder / "model.safetensors")
    save_file(change(tensors), folder / "model.safetensors")
    return params


def test_an_unembedding_that_differs_from_a_tied_embedding_is_refused(tmp_path):
    changed(tmp_path, lambda held: held | {"lm_head.weight": held["model.embed_tokens.weight"] + 1})
    with pytest.raises(ValueError, match=r"tie_word_embeddings of .*config.json must be false"):
        load(tmp_path)


def test_buffers_of_old_files_are_passed_over(tmp_path):
    buffer = {"model.layers.0.self_attn.rotary_emb.inv_freq": np.ones(4, np.float32)}
    params = changed(tmp_path, lambda held: held | buffer)
    assert_same(load(tmp_path)[1], params)


def test_names_of_the_bare_decoder_are_read(tmp_path):
    def bare(held):
        return {name.removeprefix("model."): array for name, array in held.items()}

    params = changed(tmp_path, bare)
    assert_same(load(tmp_path)[1], params)


def sharded(folder):
    """A saved policy in shards, and its index."""
    model, params = policy("qwen2")
    save(folder, model, params, max_shard_bytes=4000)
    index = folder / "model.safetensors.index.json"
    return index, json.loads(index.read_text())


def test_weights_beside_an_index_that_does_not_name_them_are_refused(tmp_path):
    sharded(tmp_path)
    save_file({"model.norm.weight": np.ones(2, np.float32)}, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match=r"either model.safetensors or the shards .* got both"):
        load(tmp_path)


@pytest.mark.parametrize("outside", ["../base/model.safetensors", "/tmp/model.safetensors"])
def test_an_index_that_names_files_elsewhere_is_refused(tmp_path, outside):
    index, written = sharded(tmp_path)
    written["weight_map"]["model.norm.weight"] = outside
    index.write_text(json.dumps(written))
    with pytest.raises(ValueError, match=r"weight_map of .* must name files of its folder, got"):
        load(tmp_path)


@pytest.mark.parametrize("name", ["model.norm.weight", "model.nothing.weight"])
def test_a_tensor_that_its_shard_does_not_hold_is_refused(tmp_path, name):
    index, written = sharded(tmp_path)
    places = written["weight_map"]
    others = sorted({*places.values()} - {places.get(name)})
    places[name] = others[0]
    index.write_text(json.dumps(written))
    with pytest.raises(ValueError, match=f"{others[0]} must hold {name}, which model.*index"):
        load(tmp_path)


@pytest.mark.thorough
def test_the_dtype_of_what_is_saved_is_declared(tmp_path):
    model, params = policy("qwen2")
    for dtype in ("float32", "bfloat16"):
        save(tmp_path, model, jax.tree.map(lambda x, d=dtype: x.astype(d), params))
        assert json.loads((tmp_path / "config.json").read_text())["torch_dtype"] == dtype


@pytest.mark.thorough
@every_config
def test_transformers_reads_the_config_and_the_tokenizer(name, tmp_path):
    model, params = policy(name)
    save(tmp_path, model, params, small_tokenizer())
    config = AutoConfig.from_pretrained(str(tmp_path))
    assert config.model_type == name.split("-")[0]
    assert (config.eos_token_id, config.pad_token_id) == (0, 1)
    assert AutoTokenizer.from_pretrained(str(tmp_path)).eos_token_id == 0


def edit(folder, change):
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors")


UP = "model.layers.1.mlp.up_proj.weight"


@pytest.mark.thorough
@pytest.mark.parametrize(
    "change, message",
    [
        (lambda t: t.pop("model.norm.weight"), "must hold model.norm.weight, found no such"),
        (lambda t: t.pop(UP), f"must hold {UP}, found no such"),
        (
            lambda t: t.update({"lm_head.bias": t[UP]}),
            r"must fit the model, got also .*\['lm_head.bias'\]",
        ),
        (
            lambda t: t.update({UP: t[UP][:-1]}),
            rf"{UP} must have the shape \(20, 12\) that the config asks for, got \(19, 12\)",
        ),
        (
            lambda t: t.update({"model.norm.weight": t[UP]}),
            r"model.norm.weight must have the shape \(12,\) .* got \(20, 12\)",
        ),
    ],
)
def test_weights_that_do_not_fit_are_refused_by_name(change, message, tmp_path):
    save(tmp_path, *policy("llama"))
    edit(tmp_path, change)
    with pytest.raises(ValueError, match=f"load: .*{message}"):
        load(tmp_path)


@pytest.mark.parametrize("dtype", ["int8", ml_dtypes.float8_e4m3fn, "int64"])
def test_weights_of_a_dtype_that_is_not_read_are_refused(dtype, tmp_path):
    save(tmp_path, *policy("llama"))
    edit(tmp_path, lambda t: t.update({UP: t[UP].astype(dtype)}))
    with pytest.raises(ValueError, match=f"load: {UP} must have one of the dtypes BF16, F16, F32"):
        load(tmp_path)


def test_a_file_that_is_no_safetensors_file_is_refused(tmp_path):
    save(tmp_path, *policy("llama"))
    (tmp_path / "model.safetensors").write_bytes(b"version https://git-lfs")
    with pytest.raises(ValueError, match=r"model\.safetensors must be a safetensors file, got"):
        load(tmp_path)


def test_a_policy_that_is_refused_leaves_what_is_there(tmp_path):
    model, params = policy("llama")
    save(tmp_path, model, params)
    mixed = Model(replace(model.config, logit_softcap=3.0))
    with pytest.raises(ValueError, match="logit_softcap must be None"):
        save(tmp_path, mixed, params)
    assert_same(load(tmp_path)[1], params)


def test_a_layer_too_many_is_refused(tmp_path):
    save(tmp_path, *policy("llama"))
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 1}))
    with pytest.raises(ValueError, match=r"must fit the model, got also \['model.layers.1"):
        load(tmp_path)


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"load: path must be a folder with a config\.json"):
        load(tmp_path / "absent")


def test_what_people_give_in_the_place_of_a_folder_is_told(tmp_path, monkeypatch):
    save(tmp_path / "run/policy", *policy("llama"))
    save(tmp_path / "runs/grpo/policy", *policy("llama"))
    (tmp_path / "adapter").mkdir()
    (tmp_path / "adapter/adapter_config.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    for name, told in {
        "run": "the policy of this run is 'run/policy'",
        "runs": "its runs have policies, such as 'runs/grpo/policy'",
        "adapter": "this is an adapter of PEFT: save what merge_and_unload",
        "Qwen/Qwen3-0.6B": "a name of a hub, `hf download Qwen/Qwen3-0.6B --local-dir FOLDER`",
    }.items():
        for read in (load, tokenizer):
            with pytest.raises(ValueError, match=f"got '{name}'; .*{told}"):
                read(name)


def test_a_folder_without_weights_is_refused(tmp_path):
    save(tmp_path, *policy("llama"))
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(ValueError, match=r"must hold model\.safetensors, found no such file"):
        load(tmp_path)


def test_a_shard_that_is_missing_is_refused_by_name(tmp_path):
    save(tmp_path, *policy("llama"))
    missing = shard(tmp_path)[1]
    (tmp_path / missing).unlink()
    with pytest.raises(ValueError, match=f"must hold {missing}, found no such file"):
        load(tmp_path)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "file, text, message",
    [
        ("config.json", b'{"model_type": ', "must hold a JSON object, got text with Expecting"),
        ("config.json", b"\xff\x00\xd8", "must hold a JSON object, got text with .* decode"),
        ("config.json", b"[]", "must hold a JSON object, got a list"),
        ("model.safetensors.index.json", b"{", "must hold a JSON object"),
        ("model.safetensors.index.json", b"{}", "must hold weight_map, .* got None"),
        ("model.safetensors.index.json", b'{"weight_map": {"a": 1}}', "must hold weight_map, .*}"),
    ],
)
def test_a_file_that_is_not_what_it_is_named_for_is_refused(file, text, message, tmp_path):
    save(tmp_path, *policy("llama"))
    (tmp_path / file).write_bytes(text)
    with pytest.raises(ValueError, match=f"{tmp_path / file} {message}"):
        load(tmp_path)
