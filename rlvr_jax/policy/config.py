"""The shape of a decoder: one frozen dataclass in which the families differ as data."""

import dataclasses
import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

ADAPTABLE = ("query", "key", "value", "attention_output", "gate", "up", "mlp_output")
"""The matrices of a layer that may be given a low-rank adapter."""

REMAT_POLICIES = ("none", "layers", "attention")
"""What `ModelConfig.remat` may be."""

_ATTENTION = ADAPTABLE[:4]


@dataclass(frozen=True)
class RopeScaling:
    """Scaling of rotary frequencies for more positions than in the pretraining.

    Fields:
      factor: divisor of slow frequencies.
      original_positions: length of the pretraining, N. A frequency f turns N f / 2π times in it.
        With at least `high_turns` turns it is unchanged. With at most `low_turns` turns it is
        divided by `factor`. Others are interpolated (Llama 3.1). None: all are divided ("linear").
    """

    factor: float
    original_positions: int | None = None
    low_turns: float = 1.0
    high_turns: float = 4.0

    def __post_init__(self) -> None:
        _check_numbers(self)
        if self.low_turns >= self.high_turns:
            raise ValueError(
                f"RopeScaling: low_turns must be below high_turns = {self.high_turns},"
                f" got {self.low_turns}"
            )


@dataclass(frozen=True)
class LoraConfig:
    """Low-rank adapters: targets compute x W + (alpha / rank) x A B (`rlvr_jax.policy.lora`).

    Fields:
      rank: columns of A and rows of B.
      alpha: numerator of the factor before x A B.
      targets: which matrices have one, of `ADAPTABLE`.
    """

    rank: int
    alpha: float
    targets: tuple[str, ...] = ADAPTABLE

    def __post_init__(self) -> None:
        _check_numbers(self)
        unknown = sorted(set(self.targets) - set(ADAPTABLE))
        if unknown or not self.targets:
            raise ValueError(
                f"LoraConfig: targets must be some of {', '.join(ADAPTABLE)}, got {self.targets}"
            )


@dataclass(frozen=True)
class ModelConfig:
    """Shape of a decoder of the Qwen2, Qwen3, Llama 3, Gemma 3 or Qwen3-MoE kind.

    Fields:
      vocab_size, width, num_layers, num_heads, num_kv_heads, head_size, mlp_width: sizes. The
        query heads share `num_kv_heads` key/value heads in equal groups. With experts,
        `mlp_width` is that of one expert.
      rope_theta: base of the rotary frequencies.
      norm_epsilon: inside the root of RMSNorm.
      qkv_bias: biases on the query, key and value projections (Qwen2).
      qk_norm: RMSNorm on every query and key head (Qwen3, Gemma).
      tied: the unembedding is the embedding.
      max_positions: largest length of a sequence.
      rope_scaling: scaling of the frequencies of `rope_theta`; None: no scaling.
      activation: of the gate, "silu" or "gelu_tanh" (Gemma).
      query_pre_attn_scalar: attention scores are divided by its root; `head_size` if None.
      sliding_window: tokens that layers of `sliding_layers` see, their own included.
      sliding_layers: indices of these layers; their frequencies have the base `local_rope_theta`
        and are never stretched (Gemma).
      output_norms: a further RMSNorm after attention and after the MLP (Gemma).
      unit_offset: norms multiply by 1 + w instead of w (Gemma).
      scaled_embedding: embeddings are multiplied by √width (Gemma).
      logit_softcap: c of logits' = c tanh(logits / c). None: no bound.
      num_experts, experts_per_token: experts of a layer, and assignments per token. None: one dense
        MLP.
      normalized_experts: the router weights of the experts of a token are scaled to the sum 1.
      compute_dtype: dtype of activations and matrix products; norms, softmax and parameters stay
        float32 (or float64).
      remat: values that the backward pass recomputes instead of storing: "none"; "layers", all but
        the input of each layer; or "attention", all but that and the results of matrix products
        with parameters.
      lora: shape of the low-rank adapters that parameters may hold.
      bitwise: sampler and scorer compute a token's log-prob with equal bits, in every batch
        (`policy/bitwise.py`). For dense models in float32 or float64 on a CPU.
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
    rope_scaling: RopeScaling | None = None
    activation: str = "silu"
    query_pre_attn_scalar: float | None = None
    sliding_window: int | None = None
    sliding_layers: tuple[int, ...] = ()
    local_rope_theta: float | None = None
    output_norms: bool = False
    unit_offset: bool = False
    scaled_embedding: bool = False
    logit_softcap: float | None = None
    num_experts: int | None = None
    experts_per_token: int | None = None
    normalized_experts: bool = False
    compute_dtype: str = "float32"
    remat: str = "none"
    lora: LoraConfig | None = None
    bitwise: bool = False

    def __post_init__(self) -> None:
        _check_numbers(self)
        if self.num_heads % self.num_kv_heads:
            raise ValueError(
                f"ModelConfig: num_kv_heads must divide num_heads = {self.num_heads},"
                f" got {self.num_kv_heads}"
            )
        if self.head_size % 2:
            raise ValueError(f"ModelConfig: head_size must be even, got {self.head_size}")
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise ValueError(
                    f"ModelConfig: {name} must be {', '.join(choices[:-1])} or {choices[-1]},"
                    f" got {getattr(self, name)!r}"
                )
        sliding = (bool(self.sliding_layers), self.sliding_window is not None)
        if any(sliding) and not (all(sliding) and self.local_rope_theta):
            raise ValueError(
                "ModelConfig: sliding_window, sliding_layers and local_rope_theta must be given"
                f" together, got {self.sliding_window}, {self.sliding_layers} and"
                f" {self.local_rope_theta}"
            )
        if any(not 0 <= layer < self.num_layers for layer in self.sliding_layers):
            raise ValueError(
                f"ModelConfig: sliding_layers must lie in 0 .. {self.num_layers - 1},"
                f" got {self.sliding_layers}"
            )
        experts, visited = self.num_experts, self.experts_per_token
        if (experts is None) != (visited is None) or (
            experts is not None and visited is not None and visited > experts
        ):
            raise ValueError(
                f"ModelConfig: experts_per_token must be 1 .. num_experts = {experts},"
                f" got {visited}"
            )
        if self.bitwise and (self.num_experts or self.compute_dtype == "bfloat16"):
            raise ValueError(
                "ModelConfig: bitwise must be False for a model with experts or in bfloat16, got"
                f" True with num_experts {self.num_experts} and {self.compute_dtype}"
            )
        if self.num_experts and self.lora and not set(self.lora.targets) <= set(_ATTENTION):
            raise ValueError(
                f"ModelConfig: lora.targets must be some of {', '.join(_ATTENTION)} in a model with"
                f" experts, got {self.lora.targets}"
            )


_INTEGER, _REAL = ("an integer", numbers.Integral), ("a number", numbers.Real)
_NUMBERS = {int: _INTEGER, int | None: _INTEGER, float: _REAL, float | None: _REAL}
_CHOICES = {
    "compute_dtype": ("float32", "bfloat16", "float64"),
    "activation": ("silu", "gelu_tanh"),
    "remat": REMAT_POLICIES,
}

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


def named_config(name: str, vocab_size: int, **overrides: Any) -> ModelConfig:
    """A `ModelConfig` of one of `SIZES`.

    Raises:
      ValueError: unknown name.
    """
    if name not in SIZES:
        raise ValueError(f"named_config: name must be one of {sorted(SIZES)}, got {name!r}")
    return ModelConfig(**{"vocab_size": vocab_size, **SIZES[name], **overrides})


def _check_numbers(config: Any) -> None:
    """Refuses values that are not positive numbers in the number fields of a dataclass."""
    for field in dataclasses.fields(config):
        value, kind = getattr(config, field.name), field.type
        if kind not in _NUMBERS or (value is None and type(None) in get_args(kind)):
            continue
        words, wanted = _NUMBERS[kind]
        if value is None or not isinstance(value, wanted):
            raise ValueError(
                f"{type(config).__name__}: {field.name} must be {words}, got {value!r}"
            )
        if not value > 0:
            raise ValueError(f"{type(config).__name__}: {field.name} must be positive, got {value}")
