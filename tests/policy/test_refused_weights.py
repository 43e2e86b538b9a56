"""Folders, files and tensors that are not a policy's weights: refused by name."""

import json
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from small_policies import assert_same, changed, policy, shard

from rlvr_jax.policy import (
    Model,
    load,
    save,
    tokenizer,
)


def test_an_unembedding_that_differs_from_a_tied_embedding_is_refused(tmp_path):
    changed(tmp_path, lambda held: held | {"lm_head.weight": held["model.embed_tokens.weight"] + 1})
    with pytest.raises(ValueError, match=r"tie_word_embeddings of .*config.json must be false"):
        load(tmp_path)


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


@pytest.mark.parametrize("outside", ["../base/model.safetensors", "/outside/model.safetensors"])
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
