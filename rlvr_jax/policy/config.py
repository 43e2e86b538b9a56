"""The shape of a decoder, read from and written to Hugging Face's `config.json`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["SIZES", "ModelConfig", "from_hugging_face", "named_config", "to_hugging_face"]
__all__ += ["wide_dtype"]


@dataclass(frozen=True)
class ModelConfig:
    """Shape of a decoder of the Qwen2 / Qwen3 / Llama kind.

    Fields:
      vocab_size, width, num_layers, num_heads, num_kv_heads, head_size, mlp_width: sizes; the
        query heads share `num_kv_heads` key/value heads in equal groups.
      rope_theta: base of the rotary frequencies.
      norm_epsilon: inside the root of RMSNorm.
      qkv_bias: biases on the query, key and value projections (Qwen2).
      qk_norm: RMSNorm on every query and key head (Qwen3).
      tied: the unembedding is the embedding.
      max_positions: longest sequence the model was made for.
      compute_dtype: dtype of activations and matrix products; norms, softmax and parameters stay
        float32 (or float64).
    """

    vocab_size: int
    width: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_size: int
    mlp_width: int
    rope_theta: float = 10_000.0
    norm_epsilon: float = 1e-6
    qkv_bias: bool = False
    qk_norm: bool = False
    tied: bool = True
    max_positions: int = 2048
    compute_dtype: str = "float32"

    def __post_init__(self):
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.type in ("int", "float") and not value > 0:
                raise ValueError(f"ModelConfig: {field.name} must be positive, got {value}")
        if self.num_heads % self.num_kv_heads:
            raise ValueError(
                f"ModelConfig: num_kv_heads must divide num_heads = {self.num_heads},"
                f" got {self.num_kv_heads}"
            )
        if self.head_size % 2:
            raise ValueError(f"ModelConfig: head_size must be even, got {self.head_size}")
        if self.compute_dtype not in ("float32", "bfloat16", "float64"):
            raise ValueError(
                "ModelConfig: compute_dtype must be float32, bfloat16 or float64,"
                f" got {self.compute_dtype!r}"
            )


# Qwen2-shaped sizes for tests, notebooks and the built-in tasks; the vocabulary is the caller's.
SIZES: Mapping[str, Mapping[str, int]] = {
    "tiny": dict(width=32, num_layers=2, num_heads=4, num_kv_heads=2, head_size=8, mlp_width=64),
    "brackets": dict(
        width=64, num_layers=2, num_heads=2, num_kv_heads=2, head_size=32, mlp_width=176
    ),
    "small": dict(
        width=128, num_layers=4, num_heads=4, num_kv_heads=2, head_size=32, mlp_width=512
    ),
    "medium": dict(
        width=512, num_layers=8, num_heads=8, num_kv_heads=4, head_size=64, mlp_width=1536
    ),
}


def wide_dtype(dtype: Any) -> str:
    """dtype of parameters, norms, softmax and logits where activations are `dtype`."""
    return "float64" if dtype == "float64" else "float32"


_SIZE_KEYS = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
)


def named_config(name: str, vocab_size: int, **overrides: Any) -> ModelConfig:
    """A `ModelConfig` of one of `SIZES`.

    Raises:
      ValueError: unknown name.
    """
    if name not in SIZES:
        raise ValueError(f"named_config: name must be one of {sorted(SIZES)}, got {name!r}")
    return ModelConfig(**{"vocab_size": vocab_size, **SIZES[name], **overrides})


def from_hugging_face(config: Mapping[str, Any]) -> ModelConfig:
    """Reads a Hugging Face `config.json` of model_type qwen2, qwen3 or llama.

    Raises:
      ValueError: another model type, a size that is missing, or a value that would change the
        result and is not built.
    """
    kind = config.get("model_type")
    if kind not in ("qwen2", "qwen3", "llama"):
        raise ValueError(
            f"from_hugging_face: model_type must be qwen2, qwen3 or llama, got {kind!r}"
        )
    missing = [key for key in _SIZE_KEYS if config.get(key) is None]
    if missing:
        raise ValueError(f"from_hugging_face: config must hold {', '.join(missing)}, found none")
    rope = {**(config.get("rope_scaling") or {}), **(config.get("rope_parameters") or {})}
    full = ["full_attention"]
    refused = {
        "hidden_act": (config.get("hidden_act", "silu"), "silu"),
        "rope type": (rope.get("rope_type", rope.get("type", "default")), "default"),
        "partial_rotary_factor": (rope.get("partial_rotary_factor", 1.0), 1.0),
        "use_sliding_window": (bool(config.get("use_sliding_window", False)), False),
        "layer_types": (sorted({*config.get("layer_types", ()), "full_attention"}), full),
        "mlp_bias": (bool(config.get("mlp_bias", False)), False),
        "attention_bias": (bool(config.get("attention_bias", False)), False),
    }
    for key, (seen, wanted) in refused.items():
        if seen != wanted:
            raise ValueError(f"from_hugging_face: {key} must be {wanted!r}, got {seen!r}")
    heads = config["num_attention_heads"]
    # transformers' default for a qwen3 config without head_dim is 128, whatever the width.
    head_size = 128 if kind == "qwen3" else config["hidden_size"] // heads
    return ModelConfig(
        vocab_size=config["vocab_size"],
        width=config["hidden_size"],
        num_layers=config["num_hidden_layers"],
        num_heads=heads,
        num_kv_heads=config.get("num_key_value_heads") or heads,
        head_size=config.get("head_dim") or head_size,
        mlp_width=config["intermediate_size"],
        rope_theta=float(rope.get("rope_theta", config.get("rope_theta", 10_000.0))),
        norm_epsilon=float(config.get("rms_norm_eps", 1e-6)),
        qkv_bias=kind == "qwen2",
        qk_norm=kind == "qwen3",
        tied=bool(config.get("tie_word_embeddings", False)),
        max_positions=int(config.get("max_position_embeddings", 2048)),
    )


def to_hugging_face(config: ModelConfig) -> dict[str, Any]:
    """The `config.json` from which transformers builds the same model.

    Raises:
      ValueError: biases together with qk-norm, which none of the three families has.
    """
    if config.qkv_bias and config.qk_norm:
        raise ValueError("to_hugging_face: qkv_bias and qk_norm exclude each other, got both")
    kind = "qwen2" if config.qkv_bias else "qwen3" if config.qk_norm else "llama"
    return {
        "architectures": [f"{kind.capitalize()}ForCausalLM"],
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
