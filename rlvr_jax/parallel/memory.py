"""The large arrays of sampling and of an update, counted by hand from the shape of the model.

A plan is made from them before anything is compiled. A report names them if a function does not
fit, because the compiler reports only the missing bytes.
"""

import math

from rlvr_jax.parallel.roofline import WIDE, computed_bytes, num_trained
from rlvr_jax.policy import ModelConfig
from rlvr_jax.policy.attention import QUERIES
from rlvr_jax.policy.cached import SLOTS, cached_heads

_LANES = 128  # the last axis of an array in a TPU's memory is filled up to whole lanes


def cache_bytes(config: ModelConfig, rows: float, slots: int, parts: int, *, padded: bool) -> int:
    """Bytes of keys and values of all layers, for the sequences of a device.

    Args:
      config: shape of the model.
      rows: sequences on the device.
      slots: tokens of one sequence.
      parts: devices that the heads are split over, where possible.
      padded: in the padded layout of a TPU's memory.
    """
    heads = cached_heads(config, parts)
    heads //= parts if heads % parts == 0 else 1
    size = -(-config.head_size // _LANES) * _LANES if padded else config.head_size
    return int(2 * computed_bytes(config) * config.num_layers * rows * slots * heads * size)


def update_buffers(
    config: ModelConfig, *, rows: float, tokens: int, parts: int, devices: int
) -> dict[str, int]:
    """Memory of an update on a device besides its state: name and bytes, the largest first.

    Args:
      config: shape of the model.
      rows: of a micro-batch on the device.
      tokens: of a row.
      parts: devices that a layer is split over.
      devices: devices that the weights are split over.
    """
    stream = rows * tokens * config.width
    vocabulary = config.vocab_size * config.width / parts
    # The stream between layers lies over tensor, by its width.
    stored = {"none": 14, "attention": 8, "layers": 1 / parts}[config.remat]
    wide, number = config.mlp_width / parts, computed_bytes(config)
    if config.experts_per_token:
        # A device holds all assignments of its rows, also those to others' experts.
        wide = config.experts_per_token * (config.mlp_width + config.width)
    buffers = {
        "gradient, and that of a micro-batch": 2 * WIDE * num_trained(config) / devices,
        "inputs of layers kept for the backward pass": number * stored * config.num_layers * stream,
        "activations of an MLP": 4 * number * rows * tokens * wide,
        "scores of a block of queries": 2
        * WIDE
        * rows
        * config.num_heads
        / parts
        * min(tokens, QUERIES)
        * tokens,
        "unembedding, gathered, and its gradient": (number + WIDE) * vocabulary,
    }
    if config.num_experts:
        # Those of the next layer are gathered meanwhile.
        experts = 3 * config.num_experts * config.width * config.mlp_width / parts
        buffers["experts of two layers, gathered, and their gradient"] = 4 * number * experts
    return _largest_first(buffers)


def sample_buffers(
    config: ModelConfig, *, rows: float, prompts: float, prompt: int, response: int, parts: int
) -> dict[str, int]:
    """Memory of sampling on a device besides weights and state: name and bytes, largest first.

    Args:
      config: shape of the model.
      rows, prompts: of a sampling batch on the device.
      prompt, response: tokens of one.
      parts: devices that a layer is split over.
    """
    wide = 4 * config.mlp_width / parts + 8 * config.width
    buffers = {
        "cache": cache_bytes(config, rows, response, parts, padded=True),
        "cache of the prompts": cache_bytes(config, prompts, prompt, parts, padded=True),
        "activations of the prompts": computed_bytes(config) * prompts * prompt * wide,
        "scores of the prompts": 2
        * WIDE
        * prompts
        * config.num_heads
        / parts
        * min(prompt, QUERIES)
        * min(prompt, SLOTS),
        "logits": 6 * WIDE * rows * config.vocab_size / parts,
        "records of the rows": 24 * rows * (prompt + response),
    }
    return _largest_first(buffers)


def _largest_first(buffers: dict[str, float]) -> dict[str, int]:
    return {k: math.ceil(v) for k, v in sorted(buffers.items(), key=lambda item: -item[1])}
