"""Weights in Hugging Face's layout, in both directions."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from devices import NEEDS_EIGHT_DEVICES
from jax.sharding import NamedSharding, PartitionSpec, SingleDeviceSharding
from numpy.testing import assert_array_equal
from safetensors.numpy import load_file, save_file
from small_policies import CONFIGS, assert_same, changed, policy, random_parameters, shard
from tokenizers import Tokenizer, models
from transformers import AutoConfig, AutoTokenizer, PreTrainedTokenizerFast

from rlvr_jax.parallel import make_mesh
from rlvr_jax.policy import (
    Model,
    load,
    parameter_table,
    save,
    tokenizer,
    weights,
)

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


def test_buffers_of_old_files_are_passed_over(tmp_path):
    buffer = {"model.layers.0.self_attn.rotary_emb.inv_freq": np.ones(4, np.float32)}
    params = changed(tmp_path, lambda held: held | buffer)
    assert_same(load(tmp_path)[1], params)


def test_names_of_the_bare_decoder_are_read(tmp_path):
    def bare(held):
        return {name.removeprefix("model."): array for name, array in held.items()}

    params = changed(tmp_path, bare)
    assert_same(load(tmp_path)[1], params)


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
