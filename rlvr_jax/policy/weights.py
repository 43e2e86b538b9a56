"""Policies in and out of folders in Hugging Face's layout, tensor by tensor."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rlvr_jax.policy import gguf, lora
from rlvr_jax.policy.config import ModelConfig
from rlvr_jax.policy.hugging_face import from_hugging_face, to_hugging_face
from rlvr_jax.policy.json_object import json_object
from rlvr_jax.policy.misnamed import hint_for
from rlvr_jax.policy.model import Model, Params
from rlvr_jax.policy.parameters import parameter_at, parameter_shapes, parameter_table
from rlvr_jax.policy.placement import on_host, place, tensor_shape
from rlvr_jax.policy.tensors import StoredTensor, stored_tensors, write_tensors

_DTYPES = ("float32", "bfloat16")
_EMBEDDING, _UNEMBEDDING = "model.embed_tokens.weight", "lm_head.weight"
# Buffers that old files hold; the model makes them of its config.
_BUFFERS = ".rotary_emb.inv_freq"
_ROWS = 4096  # of two matrices that are compared at a time
_GENERATION = "generation_config.json"
_TOKENIZER = (
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
)


def load(
    path: str | Path,
    sharding: Callable[[ModelConfig], Any] | None = None,
    dtype: str = "float32",
) -> tuple[Model, Params]:
    """Loads a policy from a folder in Hugging Face's layout or from a GGUF file.

    Examples:
      >>> from rlvr_jax import policy, tasks
      >>> model, params = policy.load(tasks.load("brackets").base_model)
      >>> type(model).__name__, sorted(params)
      ('Model', ['embedding', 'final_norm', 'layers'])

    All names, shapes and dtypes are checked before anything is allocated. Then one parameter after
    the other is read, each device's part of it only, and put where it belongs.

    Args:
      path: folder with `config.json` and `model.safetensors` (or its shards with an index), or a
        file whose name ends in `.gguf`.
      sharding: from the config the shardings of the parameters, e.g. `functools.partial(
        rlvr_jax.parallel.parameter_shardings, mesh=mesh)`; one device if None.
      dtype: of the parameters, "float32" or "bfloat16": half the memory, for policies that are
        sampled from or score; training keeps its parameters in float32.
    Returns:
      (model, params); the model computes in the same dtype.
    Raises:
      ValueError: another dtype; no such folder; no config or weights in it; an invalid file;
        another architecture; a missing or unexpected tensor, or one of another shape or dtype.
    """
    if dtype not in _DTYPES:
        raise ValueError(f"load: dtype must be one of {', '.join(_DTYPES)}, got {dtype!r}")
    config, tensors, generation_config = opened(path)
    if config.tied and _UNEMBEDDING in tensors and Path(path).suffix != ".gguf":
        _check_tied(Path(path), tensors)
    params = place(
        parameter_table(config),
        parameter_shapes(config),
        tensors,
        None if sharding is None else sharding(config),
        passed_over=(_UNEMBEDDING,) if config.tied else (),
        dtype=jnp.dtype(dtype),
    )
    return Model(replace(config, compute_dtype=dtype), generation_config), params


def opened(path: str | Path) -> tuple[ModelConfig, dict[str, StoredTensor], str | None]:
    """Opens a policy folder or a GGUF file without reading tensors. Returns the configuration of
    the model, its tensors by name, and the text of its `generation_config.json`.

    Raises:
      ValueError: as `load`.
    """
    generation_config = None
    if Path(path).suffix == ".gguf":
        config, tensors, stop_tokens = gguf.read(path)
        if len(stop_tokens) > 1:
            generation_config = json.dumps({"eos_token_id": stop_tokens}, indent=2) + "\n"
        return config, tensors, generation_config
    folder = Path(path)
    file = folder / "config.json"
    if not file.is_file():
        raise ValueError(
            f"load: path must be a folder with a config.json, got {str(path)!r}{hint_for(path)}"
        )
    config = from_hugging_face(json_object(file.read_bytes(), file))
    if (folder / _GENERATION).is_file():
        generation_config = (folder / _GENERATION).read_text()
    return config, _in_our_names(stored_tensors(folder)), generation_config


def _in_our_names(tensors: Mapping[str, StoredTensor]) -> dict[str, StoredTensor]:
    """The tensors by their full names, less buffers: a file of the bare decoder has no `model.`."""
    named = {name: tensor for name, tensor in tensors.items() if not name.endswith(_BUFFERS)}
    if any(name.startswith("model.") for name in named):
        return named
    return {name if name == _UNEMBEDDING else f"model.{name}": named[name] for name in named}


def _check_tied(folder: Path, tensors: Mapping[str, StoredTensor]) -> None:
    """Refuses an unembedding of its own where the config says that there is none."""
    one, other = tensors[_UNEMBEDDING], tensors.get(_EMBEDDING)
    if other is None:
        return
    alike = one.shape == other.shape
    for start in range(0, one.shape[0], _ROWS):
        part = slice(start, min(start + _ROWS, one.shape[0])), slice(None)
        alike = alike and np.array_equal(one.read(part), other.read(part))
    if not alike:
        raise ValueError(
            f"load: tie_word_embeddings of {folder / 'config.json'} must be false, as"
            f" {_UNEMBEDDING} differs from {_EMBEDDING}, got true"
        )


def save(
    path: str | Path,
    model: Model,
    params: Params,
    tokenizer: Any = None,
    max_shard_bytes: int = 5_000_000_000,
) -> None:
    """Writes a folder that `load`, transformers and servers read.

    Adapters are merged into the matrices they adapt. On several hosts all call it, and the first
    one writes.

    Args:
      path: folder to make; an existing policy in it is replaced.
      model, params: policy and its weights, with adapters if it has some.
      tokenizer: from `rlvr_jax.policy.tokenizer`; written next to the weights, with its
        chat template.
      max_shard_bytes: largest file of weights; more than that goes into shards with an index.
    """
    config = to_hugging_face(model.config)
    config["torch_dtype"] = str(jax.tree.leaves(params)[0].dtype)
    table = parameter_table(model.config)
    leaves = [parameter_at(params, entry.path) for entry in table]
    adapted = bool(lora.detach(params)[1]["layers"])
    names = [
        dict(entry.names(*map(range, leaf.shape[: entry.num_stacked])))
        for entry, leaf in zip(table, leaves, strict=True)
    ]

    def tensors():
        for entry, leaf, named in zip(table, leaves, names, strict=True):
            for index, name in named.items():
                # Merged one by one: all of them would be the weights once more.
                whole = lora.merged_leaf(model, params, entry, index) if adapted else None
                array = on_host(leaf, index) if whole is None else on_host(whole)
                yield name, np.ascontiguousarray(array.T if entry.transposed else array)

    if jax.process_index() != 0:
        for _ in tensors():  # what is on several hosts is gathered by all of them
            pass
        return
    shapes = {
        name: jax.ShapeDtypeStruct(tensor_shape(entry, leaf.shape), leaf.dtype)
        for entry, leaf, named in zip(table, leaves, names, strict=True)
        for name in named.values()
    }
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    write_tensors(folder, shapes, tensors(), max_shard_bytes)
    for name in (*_TOKENIZER, _GENERATION):
        (folder / name).unlink(missing_ok=True)
    if tokenizer is not None:
        tokenizer.save_pretrained(str(folder))
        # transformers 5 writes a name that earlier ones, and servers built on them, do not know.
        written = folder / "tokenizer_config.json"
        settings = json_object(written.read_bytes(), written)
        settings["tokenizer_class"] = "PreTrainedTokenizerFast"
        written.write_text(json.dumps(settings, indent=2, ensure_ascii=False) + "\n")
        for name in ("bos_token_id", "eos_token_id", "pad_token_id"):
            if getattr(tokenizer, name, None) is not None:
                config[name] = getattr(tokenizer, name)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    if model.generation_config is not None:
        (folder / _GENERATION).write_text(model.generation_config)
