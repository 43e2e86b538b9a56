"""Hugging Face's `config.json`, read into a `ModelConfig` and written from one."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from rlvr_jax.policy.config import ModelConfig, RopeScaling

FAMILIES: Mapping[str, str] = {
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "llama": "LlamaForCausalLM",
    "gemma3_text": "Gemma3ForCausalLM",
    "qwen3_moe": "Qwen3MoeForCausalLM",
}
"""The model types that are built, and transformers' class of each."""

_SIZE_KEYS = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
)

# What transformers takes an absent key for, where it is not the same in all families.
_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "qwen3": {"head_dim": 128},
    "gemma3_text": {
        "head_dim": 256,
        "query_pre_attn_scalar": 256,
        "sliding_window": 4096,
        "sliding_window_pattern": 6,
        "tie_word_embeddings": True,
        "rope_theta": 1_000_000.0,
        "rope_local_base_freq": 10_000.0,
    },
}

# Values that would change the result and are not built, with the one that is.
_ONLY: Mapping[str, Any] = {
    "attention_bias": False,
    "mlp_bias": False,
    "use_sliding_window": False,
    "partial_rotary_factor": 1.0,
    "attn_logit_softcapping": None,
    "use_bidirectional_attention": False,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
    "quantization_config": None,
}


def from_hugging_face(config: Mapping[str, Any]) -> ModelConfig:
    """Reads a `config.json` of one of `FAMILIES`.

    Raises:
      ValueError: another model type, a value that is missing or of the wrong kind, or one that
        would change the result and is not built.
    """
    kind = config.get("model_type")
    if not isinstance(kind, str) or kind not in FAMILIES:
        raise ValueError(
            f"from_hugging_face: model_type must be one of {', '.join(FAMILIES)}, got {kind!r}"
        )
    gemma, experts = kind == "gemma3_text", kind == "qwen3_moe"
    num_experts = config.get("num_local_experts", config.get("num_experts"))
    config = {**_DEFAULTS.get(kind, {}), **config, "num_experts": num_experts}
    keys = _SIZE_KEYS
    if experts:
        keys += ("moe_intermediate_size", "num_experts", "num_experts_per_tok")
    missing = [key for key in keys if config.get(key) is None]
    if missing:
        raise ValueError(f"from_hugging_face: config must hold {', '.join(missing)}, found none")
    for key in keys:
        _require_count(config, key)
    if config.get("use_sliding_window") and not _has_windows(config):
        config["use_sliding_window"] = False
    for key, wanted in _ONLY.items():
        _require(key, config.get(key) or wanted, wanted)
    activation = ("hidden_activation", "gelu_pytorch_tanh") if gemma else ("hidden_act", "silu")
    _require(activation[0], config.get(*activation), activation[1])

    theta, scaling, local_theta = _rope(config, gemma)
    sliding = _sliding_layers(config, gemma)
    heads = config["num_attention_heads"]
    head_size = config.get("head_dim") or config["hidden_size"] // heads
    scalar = config.get("query_pre_attn_scalar") if gemma else None
    return ModelConfig(
        vocab_size=config["vocab_size"],
        width=config["hidden_size"],
        num_layers=config["num_hidden_layers"],
        num_heads=heads,
        num_kv_heads=config.get("num_key_value_heads") or heads,
        head_size=head_size,
        mlp_width=config["moe_intermediate_size" if experts else "intermediate_size"],
        rope_theta=theta,
        norm_epsilon=_number(config, "rms_norm_eps", 1e-6),
        qkv_bias=kind == "qwen2",
        qk_norm=gemma or kind in ("qwen3", "qwen3_moe"),
        tied=bool(config.get("tie_word_embeddings", False)),
        max_positions=config.get("max_position_embeddings", 2048),
        rope_scaling=scaling,
        activation="gelu_tanh" if gemma else "silu",
        query_pre_attn_scalar=None if scalar == head_size else scalar,
        sliding_window=config["sliding_window"] if sliding else None,
        sliding_layers=sliding,
        local_rope_theta=local_theta if sliding else None,
        output_norms=gemma,
        unit_offset=gemma,
        scaled_embedding=gemma,
        logit_softcap=config.get("final_logit_softcapping") if gemma else None,
        num_experts=num_experts if experts else None,
        experts_per_token=config["num_experts_per_tok"] if experts else None,
        normalized_experts=experts and bool(config.get("norm_topk_prob", False)),
    )


def to_hugging_face(config: ModelConfig) -> dict[str, Any]:
    """The `config.json` from which transformers builds the same model.

    `compute_dtype`, `remat` and `lora` are no part of it.

    Raises:
      ValueError: a combination that no family has.
    """
    if config.num_experts is not None:
        kind = "qwen3_moe"
    elif config.output_norms:
        kind = "gemma3_text"
    else:
        kind = "qwen2" if config.qkv_bias else "qwen3" if config.qk_norm else "llama"
    written = {
        "architectures": [FAMILIES[kind]],
        "model_type": kind,
        "vocab_size": config.vocab_size,
        "hidden_size": config.width,
        "num_hidden_layers": config.num_layers,
        "num_attention_heads": config.num_heads,
        "num_key_value_heads": config.num_kv_heads,
        "head_dim": config.head_size,
        "intermediate_size": config.mlp_width,
        "hidden_act": "silu",
        "rope_theta": config.rope_theta,
        "rms_norm_eps": config.norm_epsilon,
        "tie_word_embeddings": config.tied,
        "max_position_embeddings": config.max_positions,
        "attention_bias": False,
        "torch_dtype": "float32",
    }
    if config.rope_scaling is not None:
        written["rope_scaling"] = _written_scaling(config.rope_scaling)
    if kind == "qwen3_moe":
        written |= {
            "moe_intermediate_size": config.mlp_width,
            "num_experts": config.num_experts,
            "num_experts_per_tok": config.experts_per_token,
            "norm_topk_prob": config.normalized_experts,
            "decoder_sparse_step": 1,
            "mlp_only_layers": [],
        }
    if kind == "gemma3_text":
        del written["hidden_act"]
        layers = range(config.num_layers)
        kinds = ("full_attention", "sliding_attention")
        written |= {
            "hidden_activation": "gelu_pytorch_tanh",
            "query_pre_attn_scalar": config.query_pre_attn_scalar or config.head_size,
            "layer_types": [kinds[layer in config.sliding_layers] for layer in layers],
            "final_logit_softcapping": config.logit_softcap,
        }
        if config.sliding_layers:
            written |= {
                "sliding_window": config.sliding_window,
                "rope_local_base_freq": config.local_rope_theta,
            }
    _check_round_trip(config, from_hugging_face(written), kind)
    return written


def _check_round_trip(config: ModelConfig, read: ModelConfig, kind: str) -> None:
    """Refuses a config of which the family can write only a part."""
    for field in dataclasses.fields(ModelConfig):
        wanted, got = getattr(config, field.name), getattr(read, field.name)
        if field.name not in ("compute_dtype", "remat", "lora", "bitwise") and wanted != got:
            raise ValueError(
                f"to_hugging_face: {field.name} must be {got!r} in a model that is otherwise of the"
                f" family {kind}, got {wanted!r}"
            )


def _require(key: str, seen: Any, wanted: Any) -> None:
    if seen != wanted:
        raise ValueError(f"from_hugging_face: {key} must be {wanted!r}, got {seen!r}")


def _require_count(config: Mapping[str, Any], key: str) -> None:
    if not isinstance(config[key], int) or config[key] < 1:
        raise ValueError(
            f"from_hugging_face: {key} must be a positive integer, got {config[key]!r}"
        )


def _number(config: Mapping[str, Any], key: str, default: float) -> float:
    value = config.get(key, default)
    if not isinstance(value, int | float):
        raise ValueError(f"from_hugging_face: {key} must be a number, got {value!r}")
    return float(value)


def _object(config: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The object that a key holds; an empty one if it holds none."""
    value = config.get(key)
    if not isinstance(value, Mapping | None):
        raise ValueError(f"from_hugging_face: {key} must be an object, got {value!r}")
    return value or {}


def _rope(config: Mapping[str, Any], gemma: bool) -> tuple[float, RopeScaling | None, float]:
    """Rotary base, its scaling, and the base of layers with a window.

    Newer files hold `rope_parameters`, Gemma's one for each kind of layer; older ones hold
    `rope_theta` and `rope_scaling`.
    """
    far = {**_object(config, "rope_scaling"), **_object(config, "rope_parameters")}
    near: Mapping[str, Any] = {}
    if gemma and ("full_attention" in far or "sliding_attention" in far):
        far, near = (_object(far, f"{kind}_attention") for kind in ("full", "sliding"))
    for rope in (far, near):
        _require("partial_rotary_factor", rope.get("partial_rotary_factor", 1.0), 1.0)
    _require("rope type of sliding_attention", _rope_type(near), "default")
    return (
        _number(far if "rope_theta" in far else config, "rope_theta", 10_000.0),
        _scaling(far),
        _number(near, "rope_theta", _number(config, "rope_local_base_freq", 10_000.0)),
    )


def _rope_type(rope: Mapping[str, Any]) -> str:
    return rope.get("rope_type", rope.get("type", "default"))


def _scaling(rope: Mapping[str, Any]) -> RopeScaling | None:
    kind = _rope_type(rope)
    keys = {
        "default": (),
        "linear": ("factor",),
        "llama3": (
            "factor",
            "original_max_position_embeddings",
            "low_freq_factor",
            "high_freq_factor",
        ),
    }
    if not isinstance(kind, str) or kind not in keys:
        raise ValueError(
            f"from_hugging_face: rope type must be one of {', '.join(keys)}, got {kind!r}"
        )
    missing = [key for key in keys[kind] if rope.get(key) is None]
    if missing:
        raise ValueError(
            f"from_hugging_face: the {kind} rope scaling must hold {', '.join(missing)}, found none"
        )
    return RopeScaling(*(rope[key] for key in keys[kind])) if keys[kind] else None


def _written_scaling(scaling: RopeScaling) -> dict[str, Any]:
    if scaling.original_positions is None:
        return {"rope_type": "linear", "factor": scaling.factor}
    return {
        "rope_type": "llama3",
        "factor": scaling.factor,
        "original_max_position_embeddings": scaling.original_positions,
        "low_freq_factor": scaling.low_turns,
        "high_freq_factor": scaling.high_turns,
    }


def _has_windows(config: Mapping[str, Any]) -> bool:
    """Whether a config of Qwen that uses windows has a layer with one."""
    types, count = config.get("layer_types"), config["num_hidden_layers"]
    if isinstance(types, list):
        return "sliding_attention" in types
    first = config.get("max_window_layers")
    return not (isinstance(first, int) and first >= count)


def _sliding_layers(config: Mapping[str, Any], gemma: bool) -> tuple[int, ...]:
    """Indices of the layers with a window."""
    count = config["num_hidden_layers"]
    types = config.get("layer_types")
    if types is None:
        if gemma:
            _require_count(config, "sliding_window_pattern")
        every = config["sliding_window_pattern"] if gemma else 1
        return tuple(layer for layer in range(count) if (layer + 1) % every)
    known = ["full_attention", "sliding_attention"] if gemma else ["full_attention"]
    if not isinstance(types, list) or len(types) != count or any(x not in known for x in types):
        raise ValueError(
            f"from_hugging_face: layer_types must be {count} of {', '.join(known)}, got {types}"
        )
    return tuple(layer for layer, kind in enumerate(types) if kind == "sliding_attention")
