"""FLOPs and bytes of sampling and of an update, counted by hand from the shape of the model.

Counted are matrix products, attention, and the bytes that they read: weights, cache, scores and
activations. Attention is over all keys, in sampling over the written blocks of the cache. Where the
attention kernel runs, it is over the kernel's blocks, and scores stay on the chip. The counts do
not use the compiled function, so they are independent of the compiler's numbers. They show which
limit of the chip comes first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp

from rlvr_jax.policy import Model, ModelConfig, lora
from rlvr_jax.policy.cached import mean_slots_read
from rlvr_jax.policy.flash import BLOCK, flash_pairs

WIDE = 4  # bytes of a number in float32
_LANES = 128  # the kernel writes the logarithm of a softmax's sum into whole lanes


@dataclass(frozen=True)
class Work:
    """On each device.

    Fields:
      flops: of matrix products.
      bytes: from and to the device's memory.
    """

    flops: float
    bytes: float

    def __add__(self, other: Work) -> Work:
        return Work(self.flops + other.flops, self.bytes + other.bytes)


@dataclass(frozen=True)
class _Pass:
    """Forward passes over rows of a device.

    Fields:
      config: of the model.
      rows: of the device.
      tokens, keys: of each row; each token looks at so many keys.
      scored: tokens of each row that meet the vocabulary, the last ones.
      parts: devices that a layer is split over.
    """

    config: ModelConfig
    rows: float
    tokens: float
    keys: float
    scored: int
    parts: int

    def layers(self) -> Work:
        """The products with weights of all layers, and the activations between them."""
        config = self.config
        tokens = self.rows * self.tokens
        weights = _layer_weights(config, tokens) / self.parts
        wide = config.mlp_width * (config.experts_per_token or 1) / self.parts
        numbers = 8 * config.width + 4 * wide  # read and written around norms and products
        activated = _weights_of_token(config) / self.parts
        return Work(
            2.0 * config.num_layers * tokens * activated,
            computed_bytes(config) * config.num_layers * (weights + tokens * numbers),
        )

    def attention(self) -> Work:
        """Scores, their softmax, and the sum of values, of all layers."""
        config = self.config
        heads = config.num_heads / self.parts
        pairs = config.num_layers * self.rows * self.tokens * self.keys * heads
        cached = 2 * config.num_kv_heads * config.head_size / self.parts * self.keys * self.rows
        # Scores are written and read in float32, attention weights in the compute dtype.
        number = computed_bytes(config)
        moved = pairs * 2 * (WIDE + number) + config.num_layers * cached * number
        return Work(4.0 * pairs * config.head_size, moved)

    def flash(self) -> Work:
        """Attention by its kernel: of the tokens before the scored ones, and of these."""
        config = self.config
        heads = config.num_layers * self.rows * config.num_heads / self.parts
        tokens = int(self.tokens)  # whole ones, wherever the kernel runs
        before = tokens - self.scored
        pairs = heads * (flash_pairs(before, before) + flash_pairs(self.scored, tokens))
        # A query and what it gets are moved once, a key and its value for each block of queries.
        number = computed_bytes(config)
        moved = 2 * number * config.head_size * (pairs / BLOCK + heads * tokens)
        sums = heads * tokens * _LANES * WIDE
        return Work(4.0 * pairs * config.head_size, moved + sums)

    def vocabulary(self) -> Work:
        """The product with the unembedding, whose logits are not stored."""
        config = self.config
        entries = config.vocab_size * config.width / self.parts
        return Work(2.0 * self.rows * self.scored * entries, computed_bytes(config) * entries)


def sample_work(
    config: ModelConfig, *, rows: float, prompts: float, prompt: int, response: int, parts: int
) -> Work:
    """Sampling `response` tokens of each of `rows` rows after the prompts.

    Args:
      config: shape of the model.
      rows, prompts: of a sampling batch on the device.
      prompt, response: tokens of one.
      parts: devices that a layer is split over.
    """
    step = _Pass(config, rows, 1, mean_slots_read(response, response), 1, parts)
    logits = Work(0, 4 * WIDE * rows * config.vocab_size / parts)
    token = step.layers() + step.attention() + step.vocabulary() + logits
    if not prompts:
        return _times(response, token)
    # All rows of a group look at one copy of their prompt.
    token += _Pass(config, prompts, rows / prompts, prompt, 0, parts).attention()
    read = _Pass(config, prompts, prompt, mean_slots_read(prompt, prompt), 0, parts)
    return read.layers() + read.attention() + _times(response, token)


def score_work(
    config: ModelConfig,
    *,
    rows: float,
    micro_batches: int,
    prompt: int,
    response: int,
    parts: int,
    flash: bool = False,
) -> Work:
    """One forward pass over the rollouts of an update.

    Args:
      config: shape of the model.
      rows: of an update on the device.
      micro_batches: number of micro-batches of the rows.
      prompt, response: tokens of one.
      parts: devices that a layer is split over.
      flash: attention is its kernel's (`policy.flash`).
    """
    chunk = rows / micro_batches
    one = _Pass(config, chunk, prompt + response, prompt + response, response, parts)
    attention = one.flash() if flash else one.attention()
    return _times(micro_batches, one.layers() + attention + one.vocabulary())


def update_work(
    config: ModelConfig,
    *,
    rows: float,
    micro_batches: int,
    prompt: int,
    response: int,
    parts: int,
    devices: int,
    forward_first: bool,
    vocabulary: bool = True,
    flash: bool = False,
) -> Work:
    """Forward and backward passes over the rollouts of an update, and the optimizer.

    Args:
      config: shape of the model.
      rows: of an update on the device.
      micro_batches: number of micro-batches of the rows.
      prompt, response: tokens of one.
      parts: devices that a layer is split over.
      devices: over which the state is split.
      forward_first: all rows are scored before the first backward pass.
      vocabulary: tokens meet the unembedding; those of a critic do not.
      flash: attention is its kernel's (`policy.flash`).
    """
    chunk = rows / micro_batches
    one = _Pass(config, chunk, prompt + response, prompt + response, response, parts)
    first = int(forward_first and micro_batches > 1)
    again = int(config.remat == "layers")
    # A backward pass costs two forward ones, and one below adapters, where weights get no gradient.
    # Attention is computed again in it, by its blocks, and the logits by their tiles. The kernel's
    # has seven products in place of the two of a forward pass: scores and their cotangents are made
    # for the queries and once more for the keys.
    pulled = 1 if config.lora else 2
    attention, backward = (one.flash(), 3.5) if flash else (one.attention(), 1 + 2)
    passes = (
        _times(first + 1 + again + pulled, one.layers())
        + _times(first + 1 + int(config.remat != "none") + backward, attention)
        + _times((first + 1 + 1 + pulled) * vocabulary, one.vocabulary())
    )
    # Parameter, two moments and gradient are read, all but the gradient are written.
    optimizer = Work(0, 7 * WIDE * num_trained(config) / devices)
    return _times(micro_batches, passes) + optimizer


def computed_bytes(config: ModelConfig) -> int:
    """Bytes of a number that the model computes with."""
    return jnp.dtype(config.compute_dtype).itemsize


def num_parameters(config: ModelConfig) -> int:
    """Numbers in the matrices of a model."""
    vocabularies = 1 if config.tied else 2
    return config.num_layers * int(_layer_weights(config)) + (
        vocabularies * config.vocab_size * config.width
    )


def num_trained(config: ModelConfig) -> int:
    """Numbers that an optimizer changes: those of the adapters, if the model has them."""
    if not config.lora:
        return num_parameters(config)
    adapters = jax.eval_shape(partial(lora.init, Model(config)), jax.random.key(0))
    return sum(x.size for x in jax.tree.leaves(adapters))


def _layer_weights(config: ModelConfig, tokens: float = math.inf) -> float:
    """Weights of a layer that so many tokens are multiplied with: of experts those that some token
    is assigned to on average, if each is as likely as another."""
    mlp = 3 * config.width * config.mlp_width
    assigned = (config.num_experts or 1) * fraction_of_experts(config, tokens)
    router = config.width * (config.num_experts or 0)
    return _attention_weights(config) + router + assigned * mlp


def fraction_of_experts(config: ModelConfig, tokens: float) -> float:
    """Mean fraction of a layer's experts that have one of so many tokens, if all experts are
    equally likely; 1 for a dense model."""
    if not config.num_experts or not config.experts_per_token:
        return 1.0
    return 1 - (1 - config.experts_per_token / config.num_experts) ** tokens


def _weights_of_token(config: ModelConfig) -> int:
    """Weights of a layer that a token is multiplied with."""
    mlp = 3 * config.width * config.mlp_width
    router = config.width * (config.num_experts or 0)
    return _attention_weights(config) + router + (config.experts_per_token or 1) * mlp


def _attention_weights(config: ModelConfig) -> int:
    heads = 2 * config.num_heads + 2 * config.num_kv_heads
    return config.width * heads * config.head_size


def _times(number: float, work: Work) -> Work:
    return Work(number * work.flops, number * work.bytes)
