"""Weights in Hugging Face's layout: one table names every parameter, its layout and axes."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlvr_jax.policy.config import ModelConfig, from_hugging_face, to_hugging_face
from rlvr_jax.policy.model import Model, Params

__all__ = ["ParameterEntry", "load", "parameter_table", "save"]

_INDEX = "model.safetensors.index.json"


class ParameterEntry(NamedTuple):
    """Where one parameter lives on both sides.

    Fields:
      path: keys into the parameter pytree; parameters below "layers" are stacked over layers.
      name: Hugging Face's name; `{layer}` is the index of the layer.
      transposed: Hugging Face keeps [out, in], the pytree [in, out].
      axes: logical axes of the pytree's array without the layer axis, for sharding.
    """

    path: tuple[str, ...]
    name: str
    transposed: bool
    axes: tuple[str, ...]


def parameter_table(config: ModelConfig) -> list[ParameterEntry]:
    """All parameters of a decoder of the Qwen2 / Qwen3 / Llama kind."""
    layer = "model.layers.{layer}."

    def matrix(ours, theirs, axes):
        return ParameterEntry(("layers", ours), f"{layer}{theirs}.weight", True, axes)

    def vector(ours, theirs, axis):
        return ParameterEntry(("layers", ours), layer + theirs, False, (axis,))

    table = [
        ParameterEntry(("embedding",), "model.embed_tokens.weight", False, ("vocab", "embed")),
        ParameterEntry(("final_norm",), "model.norm.weight", False, ("embed",)),
        vector("attention_norm", "input_layernorm.weight", "embed"),
        vector("mlp_norm", "post_attention_layernorm.weight", "embed"),
        matrix("query", "self_attn.q_proj", ("embed", "heads")),
        matrix("key", "self_attn.k_proj", ("embed", "kv_heads")),
        matrix("value", "self_attn.v_proj", ("embed", "kv_heads")),
        matrix("attention_output", "self_attn.o_proj", ("heads", "embed")),
        matrix("gate", "mlp.gate_proj", ("embed", "mlp")),
        matrix("up", "mlp.up_proj", ("embed", "mlp")),
        matrix("mlp_output", "mlp.down_proj", ("mlp", "embed")),
    ]
    if config.qkv_bias:
        table += [
            vector("query_bias", "self_attn.q_proj.bias", "heads"),
            vector("key_bias", "self_attn.k_proj.bias", "kv_heads"),
            vector("value_bias", "self_attn.v_proj.bias", "kv_heads"),
        ]
    if config.qk_norm:
        table += [
            vector("query_norm", "self_attn.q_norm.weight", "head"),
            vector("key_norm", "self_attn.k_norm.weight", "head"),
        ]
    if not config.tied:
        table.append(ParameterEntry(("unembedding",), "lm_head.weight", False, ("vocab", "embed")))
    return table


def load(path: str | Path) -> tuple[Model, Params]:
    """Loads a policy from a folder in Hugging Face's layout.

    Args:
      path: folder with `config.json` and `model.safetensors` (or its sharded form with an index).
    Returns:
      (model, params); params are float32.
    Raises:
      ValueError: no such folder, no config or weights in it, another architecture, a missing or
        unexpected tensor, or one of the wrong shape.
    """
    folder = Path(path)
    if not (folder / "config.json").is_file():
        raise ValueError(f"load: path must be a folder with a config.json, got {str(path)!r}")
    config = from_hugging_face(json.loads((folder / "config.json").read_text()))
    tensors = dict(_tensors(folder))
    model = Model(config)
    shapes = _shapes(model)
    params: dict[str, Any] = {}
    for entry in parameter_table(config):
        wanted = shapes
        for part in entry.path:
            wanted = wanted[part]
        if entry.path[0] == "layers":
            names = [entry.name.format(layer=index) for index in range(config.num_layers)]
            array = np.stack([_take(tensors, name, entry, wanted.shape[1:]) for name in names])
        else:
            array = _take(tensors, entry.name, entry, wanted.shape)
        node = params
        for part in entry.path[:-1]:
            node = node.setdefault(part, {})
        node[entry.path[-1]] = jnp.asarray(array)
    if config.tied:
        tensors.pop("lm_head.weight", None)
    if tensors:
        raise ValueError(f"load: tensors without a place in the model: {sorted(tensors)[:5]}")
    return model, params


def save(path: str | Path, model: Model, params: Params, tokenizer: Any = None) -> None:
    """Writes a folder that `load`, transformers and servers read.

    Args:
      path: folder to make; an existing policy in it is replaced.
      tokenizer: what `rlvr_jax.policy.tokenizer` returned; written beside the weights.
    """
    from safetensors.numpy import save_file

    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    # `load` prefers the shards of an earlier policy to the file written here.
    for stale in [folder / _INDEX, *folder.glob("model-*-of-*.safetensors")]:
        stale.unlink(missing_ok=True)
    tensors = {}
    for entry in parameter_table(model.config):
        node = params
        for part in entry.path:
            node = node[part]
        array = np.asarray(node)
        stacked = entry.path[0] == "layers"
        for index, part in enumerate(array if stacked else [array]):
            part = part.T if entry.transposed else part
            tensors[entry.name.format(layer=index)] = np.ascontiguousarray(part)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    config = to_hugging_face(model.config)
    if tokenizer is not None:
        tokenizer.save_pretrained(str(folder))
        for name in ("bos_token_id", "eos_token_id", "pad_token_id"):
            if getattr(tokenizer, name, None) is not None:
                config[name] = getattr(tokenizer, name)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")


@functools.cache
def _shapes(model: Model) -> Any:
    """Shapes of a model's parameters; traced once however often it is loaded."""
    return jax.eval_shape(model.init, jax.random.key(0))


def _tensors(folder: Path) -> Iterator[tuple[str, np.ndarray]]:
    """All tensors of a folder, by name, as float32 numpy arrays."""
    from safetensors import safe_open

    index = folder / _INDEX
    if index.is_file():
        files = sorted(set(json.loads(index.read_text())["weight_map"].values()))
    else:
        files = ["model.safetensors"]
    for name in files:
        if not (folder / name).is_file():
            raise ValueError(f"load: {folder} must hold {name}, found no such file")
        with safe_open(folder / name, framework="flax") as shard:
            for key in shard.keys():  # noqa: SIM118 (safe_open is no mapping)
                yield key, np.asarray(shard.get_tensor(key).astype(jnp.float32))


def _take(
    tensors: dict[str, np.ndarray], name: str, entry: ParameterEntry, shape: tuple[int, ...]
) -> np.ndarray:
    """Removes and returns a tensor in the pytree's layout, in which it must have `shape`."""
    if name not in tensors:
        raise ValueError(f"load: the weights must hold {name}, found no such tensor")
    array = tensors.pop(name)
    wanted = shape[::-1] if entry.transposed else shape
    if array.shape != wanted:
        raise ValueError(
            f"load: {name} must have the shape {wanted} of config.json, got {array.shape}"
        )
    return array.T if entry.transposed else array
