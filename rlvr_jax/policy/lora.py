"""Low-rank adapters: x W becomes x W + (α / r) x A B, with A [in, r] and B [r, out] per layer.

A model whose config has `lora` takes parameters with or without adapters. With adapters they are
the policy, without adapters the frozen reference. Both share the memory of the base. The adapter is
a separate pytree, so that training has gradients and optimizer state only for it:

    model = replace(model, config=replace(model.config, lora=LoraConfig(rank=16, alpha=32)))
    adapter = lora.init(model, key)
    stats = policy.score(model, lora.attach(base, adapter), rollouts)  # differentiate in adapter
    reference = policy.score(model, base, rollouts)

`policy.save` merges an attached adapter; `save` and `load` here handle only adapters, in the format
of PEFT. Source: Hu et al. 2021, https://arxiv.org/abs/2106.09685.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from safetensors.numpy import save_file

from rlvr_jax.policy import products
from rlvr_jax.policy.config import ADAPTABLE, LoraConfig, ModelConfig
from rlvr_jax.policy.json_object import json_object
from rlvr_jax.policy.model import Model, Params
from rlvr_jax.policy.parameters import (
    ParameterEntry,
    parameter_at,
    parameter_shapes,
    parameter_table,
)
from rlvr_jax.policy.placement import on_host, place
from rlvr_jax.policy.tensors import tensors_of

_CONFIG, _WEIGHTS = "adapter_config.json", "adapter_model.safetensors"

# Values of PEFT's config that would change the result, with the one that is built.
_ONLY = {
    "peft_type": "LORA",
    "bias": "none",
    "fan_in_fan_out": False,
    "use_rslora": False,
    "use_dora": False,
    "lora_bias": False,
    "modules_to_save": None,
    "layers_to_transform": None,
    "rank_pattern": {},
    "alpha_pattern": {},
    "target_parameters": None,
    "trainable_token_indices": None,
    "exclude_modules": None,
    "alora_invocation_tokens": None,
}
# What changes nothing of an adapter that is trained already; any other key must be empty.
_HARMLESS = {"r", "lora_alpha", "target_modules", "init_lora_weights"}
_HARMLESS |= {"task_type", "base_model_name_or_path", "revision", "auto_mapping", "inference_mode"}
_HARMLESS |= {"peft_version", "lora_dropout", "megatron_core", "megatron_config", "runtime_config"}
_HARMLESS |= {"layers_pattern", "qalora_group_size", "ensure_weight_tying"}
_HARMLESS |= {"eva_config", "loftq_config", "corda_config", "lora_ga_config", "velora_config"}
# Initializations of PEFT; its other ones also change the base.
_BEGINNINGS = (True, False, "gaussian", "orthogonal", "eva")


def adapter_table(config: ModelConfig) -> list[ParameterEntry]:
    """All parameters of the adapter, A and B of every target, in PEFT's names."""
    table = []
    for entry in _targets(config):
        stem = "base_model.model." + entry.name.removesuffix(".weight")
        for side, axes in (("a", (entry.axes[0], "rank")), ("b", ("rank", entry.axes[1]))):
            path = ("layers", f"{entry.path[1]}_lora_{side}")
            name = f"{stem}.lora_{side.upper()}.weight"
            table.append(ParameterEntry(path, name, True, axes))
    return table


def init(model: Model, key: jax.Array) -> Params:
    """A new adapter, which changes nothing yet: A uniform in ±1/√in, B zero (PEFT's default)."""
    layers, rank = {}, _adapter(model.config).rank
    for entry in _targets(model.config):
        stacked = parameter_at(parameter_shapes(model.config), entry.path)
        depth, inputs, outputs = stacked.shape
        bound = inputs**-0.5
        key, own = jax.random.split(key)
        down = (depth, inputs, rank)
        layers[f"{entry.path[1]}_lora_a"] = jax.random.uniform(
            own, down, stacked.dtype, -bound, bound
        )
        layers[f"{entry.path[1]}_lora_b"] = jnp.zeros((depth, rank, outputs), stacked.dtype)
    return {"layers": layers}


def attach(base: Params, adapter: Params) -> Params:
    """Parameters of the adapted policy; nothing is copied."""
    return {**base, "layers": {**base["layers"], **adapter["layers"]}}


def detach(params: Params) -> tuple[Params, Params]:
    """The base and the adapter (which may be empty) of parameters; nothing is copied."""
    own = {name: leaf for name, leaf in params["layers"].items() if "_lora_" in name}
    rest = {name: leaf for name, leaf in params["layers"].items() if name not in own}
    return {**params, "layers": rest}, {"layers": own}


def merge(model: Model, params: Params) -> Params:
    """Parameters without adapters that compute the same: W + (α / r) A B.

    Parameters without adapters are returned as they are.
    """
    base, adapter = detach(params)
    if not adapter["layers"]:
        return params
    layers = dict(base["layers"])
    for entry in _targets(model.config):
        layers[entry.path[1]] = merged_leaf(model, params, entry)
    return {**base, "layers": layers}


def merged_leaf(
    model: Model, params: Params, entry: ParameterEntry, index: tuple[int, ...] = ()
) -> Array:
    """Returns one parameter of the result of `merge`, or its entry at `index`, without the rest.

    Args:
      model: the policy.
      params: base weights and adapters.
      entry: name and place of the parameter.
      index: place in the stacked axes, such as the layer.
    """
    leaf = parameter_at(params, entry.path)
    name = entry.path[-1]
    pair = [params["layers"].get(f"{name}_lora_{side}") for side in "ab"]
    if entry.path[0] != "layers" or pair[0] is None:
        return leaf[index] if index else leaf
    # A slice of one layer: layer by layer as all layers at once, to the bit.
    layers = slice(index[0], index[0] + 1) if index else slice(None)
    down, up = (side[layers] for side in pair)
    product = products.einsum("lir,lro->lio", down, up)
    adapter = _adapter(model.config)
    merged = leaf[layers] + adapter.alpha / adapter.rank * product
    return merged[0] if index else merged


def save(path: str | Path, model: Model, adapter: Params, base_model: str) -> None:
    """Writes the adapter as a folder that PEFT loads.

    Args:
      path: folder to make; an adapter in it is replaced.
      model: model whose matrices have the adapter.
      adapter: as from `init` or `detach`.
      base_model: name or folder of the base, for who loads the adapter.
    """
    tensors, lora = {}, _adapter(model.config)
    for entry in adapter_table(model.config):
        for layer, part in enumerate(on_host(parameter_at(adapter, entry.path))):
            tensors[entry.name.format(layer=layer)] = np.ascontiguousarray(part.T)
    if jax.process_index() != 0:
        return
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / _WEIGHTS, metadata={"format": "pt"})
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": str(base_model),
        "r": lora.rank,
        "lora_alpha": lora.alpha,
        "lora_dropout": 0.0,
        "target_modules": [_module(entry) for entry in _targets(model.config)],
        "bias": "none",
        "inference_mode": True,
    }
    (folder / _CONFIG).write_text(json.dumps(config, indent=2) + "\n")


def load(path: str | Path, model: Model, shardings: Any = None) -> tuple[Model, Params]:
    """Loads an adapter for a model from a folder in PEFT's format.

    Args:
      path: folder with `adapter_config.json` and `adapter_model.safetensors`.
      model: the base; its own `lora` is replaced by the folder's.
      shardings: of the adapter's arrays, in its structure; one device if None.
    Returns:
      The model with the adapter's config, and the adapter in float32.
    Raises:
      ValueError: missing or invalid files; a missing value; an unsupported value that would change
        the result; or tensors that do not fit the model.
    """
    folder = Path(path)
    for name in (_CONFIG, _WEIGHTS):
        if not (folder / name).is_file():
            raise ValueError(f"lora.load: {folder} must hold {name}, found no such file")
    written = json_object((folder / _CONFIG).read_bytes(), folder / _CONFIG)
    missing = [key for key in ("r", "lora_alpha", "target_modules") if written.get(key) is None]
    if missing:
        raise ValueError(
            f"lora.load: {folder / _CONFIG} must hold {', '.join(missing)}, found none"
        )
    for key, wanted in _ONLY.items():
        seen = written.get(key) or wanted
        if seen != wanted:
            raise ValueError(f"lora.load: {key} must be {wanted!r}, got {seen!r}")
    for key, seen in written.items():
        if seen and key not in _ONLY and key not in _HARMLESS:
            raise ValueError(
                f"lora.load: {key} must be empty, as it is not supported, got {seen!r}"
            )
    begun = written.get("init_lora_weights", True)
    if begun not in _BEGINNINGS:
        raise ValueError(
            "lora.load: init_lora_weights must not change the base"
            f" ({', '.join(map(repr, _BEGINNINGS))}), got {begun!r}; PEFT's"
            " path_initial_model_for_weight_conversion saves such an adapter for the plain base"
        )
    names = {_module(entry): entry.path[1] for entry in _adaptable(model.config)}
    modules = written["target_modules"]
    if not isinstance(modules, list) or any(module not in [*names] for module in modules):
        raise ValueError(
            f"lora.load: target_modules must be a list of {', '.join(names)}, got {modules!r}"
        )
    targets = tuple(ours for theirs, ours in names.items() if theirs in modules)
    lora = LoraConfig(written["r"], written["lora_alpha"], targets)
    model = replace(model, config=replace(model.config, lora=lora))
    shapes = jax.eval_shape(lambda: init(model, jax.random.key(0)))
    tensors = tensors_of(folder / _WEIGHTS)
    return model, place(adapter_table(model.config), shapes, tensors, shardings)


def _adaptable(config: ModelConfig) -> list[ParameterEntry]:
    """Entries of the matrices that may be adapted; those of experts may not."""
    return [
        entry
        for entry in parameter_table(config)
        if entry.path[-1] in ADAPTABLE and entry.num_stacked == 1
    ]


def _adapter(config: ModelConfig) -> LoraConfig:
    if config.lora is None:
        raise ValueError("lora: config.lora must be the adapter's LoraConfig, got None")
    return config.lora


def _targets(config: ModelConfig) -> list[ParameterEntry]:
    targets = _adapter(config).targets
    return [entry for entry in _adaptable(config) if entry.path[-1] in targets]


def _module(entry: ParameterEntry) -> str:
    """PEFT's name of a matrix: the last part of the module's name."""
    return entry.name.split(".")[-2]
