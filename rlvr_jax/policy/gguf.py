"""Policies in GGUF files, as llama.cpp writes them: config and tensors.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. The files are read and
dequantised by the package `gguf`, which is an extra.
"""

import gc
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from rlvr_jax.policy.config import ModelConfig, RopeScaling
from rlvr_jax.policy.rope import stretched
from rlvr_jax.policy.tensors import StoredTensor

# What sets the architectures apart.
_ARCHITECTURES: Mapping[str, Mapping[str, Any]] = {
    "llama": {},
    "qwen2": {"qkv_bias": True},
    "qwen3": {"qk_norm": True},
}

_LLAMA_POSITIONS = 8192
"""Positions in the pretraining of Llama 3, with the turns that `RopeScaling` has by itself."""

_OUTER = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
_INNER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def read(path: str | Path) -> tuple[ModelConfig, dict[str, StoredTensor], list[int]]:
    """The shape of the model in a GGUF file, its tensors in Hugging Face's names and layout, and
    the tokens that end a response.

    Before a tensor's `read` is called, one row of it is dequantised, to see that it can be.

    Raises:
      ValueError: not a GGUF file; another architecture; a missing or invalid size; an unsupported
        rotary scaling, or a quantisation that the package `gguf` cannot convert to floats. Also if
        the package is missing.
    """
    reader, fields = open_gguf(path)
    kind = fields("general.architecture")
    if kind not in _ARCHITECTURES:
        raise ValueError(
            f"load: the architecture of {path} must be one of {', '.join(_ARCHITECTURES)},"
            f" got {kind!r}"
        )
    stored = {tensor.name: tensor for tensor in reader.tensors}

    def count(key, *default):
        number = fields(f"{kind}.{key}", *default)
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise ValueError(
                f"load: {kind}.{key} of {path} must be a positive integer, got {number!r}"
            )
        return number

    heads, width = count("attention.head_count"), count("embedding_length")
    size = count("attention.key_length", max(1, width // heads))
    for key in ("rope.dimension_count", "attention.value_length"):
        if fields(f"{kind}.{key}", size) != size:
            raise ValueError(
                f"load: {kind}.{key} must be the head size {size}, got {fields(f'{kind}.{key}')}"
            )
    if "token_embd.weight" not in stored:
        raise ValueError("load: the weights must hold token_embd.weight, found no such tensor")
    config = ModelConfig(
        vocab_size=int(stored["token_embd.weight"].shape[1]),
        width=width,
        num_layers=count("block_count"),
        num_heads=heads,
        num_kv_heads=count("attention.head_count_kv", heads),
        head_size=size,
        mlp_width=count("feed_forward_length"),
        rope_theta=_decimal(fields(f"{kind}.rope.freq_base", 10_000.0)),
        norm_epsilon=_decimal(fields(f"{kind}.attention.layer_norm_rms_epsilon")),
        tied="output.weight" not in stored,
        max_positions=count("context_length"),
        rope_scaling=_scaling(kind, fields),
        **_ARCHITECTURES[kind],
    )
    if (divisors := stored.pop("rope_freqs.weight", None)) is not None:
        read = _stored(divisors, None).read((slice(None),))
        config = replace(config, rope_scaling=_of_divisors(config, read))
    # Only llama's files keep the two halves of a rotary pair side by side.
    paired = {"attn_q": config.num_heads, "attn_k": config.num_kv_heads} if kind == "llama" else {}
    tensors = {}
    for name, tensor in stored.items():
        layer = re.fullmatch(r"blk\.(\d+)\.(\w+)\.(weight|bias)", name)
        if layer and layer[2] in _INNER:
            theirs = f"model.layers.{layer[1]}.{_INNER[layer[2]]}.{layer[3]}"
            tensors[theirs] = _stored(tensor, paired.get(layer[2]))
        else:
            stem, _, kind_of_tensor = name.partition(".")
            tensors[f"{_OUTER.get(stem, stem)}.{kind_of_tensor}"] = _stored(tensor, None)
    ends = (fields(f"tokenizer.ggml.{name}_token_id", None) for name in ("eos", "eot", "eom"))
    stop_tokens = dict.fromkeys(end for end in ends if end is not None and end < config.vocab_size)
    return config, tensors, list(stop_tokens)


def _scaling(kind: str, fields: Any) -> RopeScaling | None:
    """The scaling of rotary frequencies; a file with a factor and without a type means linear."""
    scaling = fields(f"{kind}.rope.scaling.type", "linear")
    if scaling not in ("none", "linear"):
        raise ValueError(f"load: {kind}.rope.scaling.type must be none or linear, got {scaling!r}")
    old = fields(f"{kind}.rope.scale_linear", 0.0)
    factor = _decimal(fields(f"{kind}.rope.scaling.factor", old))
    # 0 says: not scaled.
    return RopeScaling(factor) if scaling == "linear" and factor not in (0, 1) else None


def _of_divisors(config: ModelConfig, divisors: np.ndarray) -> RopeScaling | None:
    """The scaling of Llama 3.1 that divides each frequency by these numbers, [H/2]."""
    half = config.head_size // 2
    frequency = config.rope_theta ** (-np.arange(half) / half)
    factor = _decimal(np.max(divisors, initial=1.0))
    scaling = RopeScaling(factor, _LLAMA_POSITIONS) if factor > 1 else None
    wanted = frequency / stretched(frequency, scaling) if scaling else np.ones(half)
    fits = divisors.shape == (half,) and np.allclose(divisors, wanted, rtol=1e-5, atol=0)
    if not fits or config.rope_scaling is not None:
        raise ValueError(
            "load: rope_freqs.weight must be what Llama 3.1 divides the frequencies of"
            f" {half} pairs by, without another scaling, got {divisors[:8].tolist()} and"
            f" {config.rope_scaling}"
        )
    return scaling


def open_gguf(path: str | Path) -> tuple[Any, Any]:
    """The package's reader of a file, and a function from a key of its metadata to the value."""
    try:
        import gguf

        gguf.GGUFReader  # noqa: B018  a folder of that name can be imported too
    except (ModuleNotFoundError, AttributeError):
        raise ValueError(
            f"load: {path} needs the package gguf, which is not installed: run `pip install gguf`"
        ) from None
    if not Path(path).is_file():
        raise ValueError(f"load: path must be a GGUF file, found no file {str(path)!r}")
    stat = Path(path).stat()
    try:
        reader = _reader(gguf.GGUFReader, str(path), stat.st_mtime_ns, stat.st_size)
    except (ValueError, IndexError, KeyError) as error:
        raise ValueError(f"load: {path} must be a GGUF file, got one with: {error}") from None

    def field(key, *default):
        if key in reader.fields:
            return reader.fields[key].contents()
        if default:
            return default[0]
        raise ValueError(f"load: the metadata of {path} must hold {key}, found none")

    return reader, field


@lru_cache(maxsize=1)
def _reader(reader: Callable[[str], Any], path: str, changed: int, size: int) -> Any:
    """The reader of a file as it is now. A vocabulary of 49 thousand words takes it seconds, and
    the tokenizer, the weights and their reading for a reference all ask for it."""
    del changed, size
    # Hundreds of thousands of small arrays, all of them in use: repeated garbage collection among
    # them is a third of the time.
    collects = gc.isenabled()
    gc.disable()
    try:
        return reader(path)
    finally:
        if collects:
            gc.enable()


def _stored(tensor: Any, paired_heads: int | None) -> StoredTensor:
    """A tensor of the file; with `paired_heads`, its rows in the order of Hugging Face."""
    import gguf

    shape = tuple(int(size) for size in tensor.shape[::-1])
    # Bytes of a vector cannot be cut where its numbers are.
    vector = len(shape) == 1
    try:
        gguf.dequantize(tensor.data if vector else tensor.data[:1], tensor.tensor_type)
    except NotImplementedError:
        raise ValueError(
            f"load: {tensor.name} must have a quantisation that gguf turns into floats,"
            f" got {tensor.tensor_type.name}"
        ) from None
    except ValueError as error:
        raise ValueError(
            f"load: {tensor.name} must hold whole blocks of {tensor.tensor_type.name}, got {error}"
        ) from None
    order = np.arange(shape[0])
    if paired_heads is not None:
        order = order.reshape(paired_heads, -1, 2).swapaxes(1, 2).reshape(-1)

    def read(index):
        if vector:
            return gguf.dequantize(tensor.data, tensor.tensor_type)[order][index]
        rows = tensor.data[order[index[0]]]
        return gguf.dequantize(rows, tensor.tensor_type)[(slice(None), *index[1:])]

    return StoredTensor(shape, read)


def _decimal(value: float) -> float:
    """The shortest decimal that rounds to the float32 in the file: 1e-5, not 9.9999997e-6."""
    return float(str(np.float32(value)))
