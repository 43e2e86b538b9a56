"""A decoder of the Qwen2 / Qwen3 / Llama kind, as Flax modules used through init and apply.

Root-mean-square norms, rotary positions, grouped-query attention, SwiGLU. Layers are scanned over
stacked parameters, so compile time does not grow with depth; shallow models are unrolled, and so
are all with a cache, because a cache that is one array per layer is updated in place.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from rlvr_jax.policy.config import ModelConfig, wide_dtype

__all__ = ["Block", "Decoder", "LayerCache"]

# A scan stacks what the backward pass needs, a third of the time of a shallow model's gradient.
MOST_UNROLLED_LAYERS = 4
_NORMAL = nn.initializers.normal(0.02)


class LayerCache(NamedTuple):
    """Rotated keys and values of one layer: [B, kv heads, S, head size]; slot = position."""

    keys: Float[Array, "B K S H"]
    values: Float[Array, "B K S H"]


def unstacked(layers: Any, num_layers: int) -> tuple[Any, ...]:
    """The parameters of each layer, from stacked ones; those of a tuple are taken as they are."""
    if isinstance(layers, tuple):
        return layers
    return tuple(jax.tree.map(lambda leaf, i=i: leaf[i], layers) for i in range(num_layers))


def rms_norm(x: Array, scale: Array, epsilon: float) -> Array:
    """x / √(mean x² + ε) · scale over the last axis; in float32, returned in x's dtype."""
    wide = x.astype(wide_dtype(x.dtype))
    mean_square = jnp.mean(jnp.square(wide), axis=-1, keepdims=True)
    return (wide * jax.lax.rsqrt(mean_square + epsilon) * scale.astype(wide.dtype)).astype(x.dtype)


def rotary_table(positions: Int[Array, "B S"], config: ModelConfig) -> tuple[Array, Array]:
    """Cosine and sine of position · θ^(-2i/H), each [B, 1, S, H/2], in float32 or wider."""
    half = config.head_size // 2
    dtype = wide_dtype(config.compute_dtype)
    frequency = config.rope_theta ** (-jnp.arange(half, dtype=dtype) / half)
    angle = positions[:, None, :, None].astype(dtype) * frequency[None, None, None]
    # Without the barrier XLA recomputes sines and cosines for every head, layer and pass.
    return jax.lax.optimization_barrier((jnp.cos(angle), jnp.sin(angle)))


def rotary(x: Float[Array, "B n S H"], table: tuple[Array, Array]) -> Array:
    """Rotates the pairs (x_i, x_{i + H/2}) by the angles of a `rotary_table`."""
    cos, sin = table
    first, second = jnp.split(x.astype(cos.dtype), 2, axis=-1)
    turned = jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)
    return turned.astype(x.dtype)


class Block(nn.Module):
    """One layer: attention and gated MLP, each behind a norm and added to the stream."""

    config: ModelConfig

    @nn.compact
    def __call__(
        self,
        x: Float[Array, "B S D"],
        positions: Int[Array, "B S"],
        table: tuple[Array, Array],
        cache: LayerCache | None,
    ) -> tuple[Array, LayerCache | None]:
        """Returns the new stream and the cache with this call's keys and values written into it.

        Without a cache, attention is causal in the order of the sequence, whatever `positions` say;
        with one, a query sees the slots up to its own position.
        """
        config = self.config
        heads, kv_heads, size = config.num_heads, config.num_kv_heads, config.head_size
        dtype = x.dtype
        kept = wide_dtype(config.compute_dtype)
        batch, length, _ = x.shape

        def project(y, name, outputs, bias=False):
            kernel = self.param(name, _NORMAL, (y.shape[-1], outputs), kept)
            # Two axes: XLA:CPU runs the kernel's gradient over (B, S) as one matrix product.
            y = y.reshape(-1, y.shape[-1]) @ kernel.astype(dtype)
            if bias:
                offset = self.param(f"{name}_bias", nn.initializers.zeros, (outputs,), kept)
                y += offset.astype(dtype)[None]
            return y.reshape(batch, length, outputs)

        def split(y, name, count):
            y = y.reshape(batch, length, count, size)
            if config.qk_norm and name != "value":
                scale = self.param(f"{name}_norm", nn.initializers.ones, (size,), kept)
                y = rms_norm(y, scale[None, None, None], config.norm_epsilon)
            return y.transpose(0, 2, 1, 3)

        scale = self.param("attention_norm", nn.initializers.ones, (config.width,), kept)
        y = rms_norm(x, scale[None, None], config.norm_epsilon)
        query = split(project(y, "query", heads * size, config.qkv_bias), "query", heads)
        key = split(project(y, "key", kv_heads * size, config.qkv_bias), "key", kv_heads)
        value = split(project(y, "value", kv_heads * size, config.qkv_bias), "value", kv_heads)
        query = rotary(query, table)
        key = rotary(key, table)

        if cache is None:
            slots = jnp.arange(length, dtype=positions.dtype)
            visible = (slots[None, :] <= slots[:, None])[None]
        else:
            rows = jnp.arange(batch, dtype=positions.dtype)[:, None]
            # Slots past the end are dropped, so finished rows and padding write nothing.
            cache = LayerCache(
                cache.keys.at[rows, :, positions].set(key.transpose(0, 2, 1, 3), mode="drop"),
                cache.values.at[rows, :, positions].set(value.transpose(0, 2, 1, 3), mode="drop"),
            )
            key, value = cache
            slots = jnp.arange(key.shape[2], dtype=positions.dtype)
            visible = slots[None, None] <= positions[:, :, None]

        grouped = query.reshape(batch, kv_heads, heads // kv_heads, length, size)
        scores = jnp.einsum("bkgsh,bkth->bkgst", grouped, key) / jnp.sqrt(jnp.asarray(size, dtype))
        scores = jnp.where(visible[:, None, None], scores, jnp.finfo(dtype).min)
        shares = jax.nn.softmax(scores.astype(wide_dtype(dtype)), axis=-1)
        y = jnp.einsum("bkgst,bkth->bkgsh", shares.astype(dtype), value)
        y = y.reshape(batch, heads, length, size).transpose(0, 2, 1, 3).reshape(batch, length, -1)
        x = x + project(y, "attention_output", config.width)

        scale = self.param("mlp_norm", nn.initializers.ones, (config.width,), kept)
        y = rms_norm(x, scale[None, None], config.norm_epsilon)
        gated = nn.silu(project(y, "gate", config.mlp_width)) * project(y, "up", config.mlp_width)
        return x + project(gated, "mlp_output", config.width), cache


class Decoder(nn.Module):
    """Embedding, layers, last norm; returns hidden states, never logits."""

    config: ModelConfig

    @nn.compact
    def __call__(
        self,
        tokens: Int[Array, "B S"],
        positions: Int[Array, "B S"],
        caches: tuple[LayerCache, ...] | None = None,
    ) -> tuple[Float[Array, "B S D"], tuple[LayerCache, ...] | None]:
        """Hidden states after the last norm, and the caches with this call's keys and values."""
        config = self.config
        kept = wide_dtype(config.compute_dtype)
        embedding = self.param("embedding", _NORMAL, (config.vocab_size, config.width), kept)
        if not config.tied:
            self.param("unembedding", _NORMAL, (config.vocab_size, config.width), kept)
        x = embedding[tokens].astype(config.compute_dtype)
        stack = nn.scan(
            Block,
            variable_axes={"params": 0},
            split_rngs={"params": True},
            in_axes=(nn.broadcast, nn.broadcast, nn.broadcast),
            length=config.num_layers,
        )(config, name="layers")
        table = rotary_table(positions, config)
        deep = config.num_layers > MOST_UNROLLED_LAYERS
        if self.is_initializing() or (caches is None and deep):
            x, _ = stack(x, positions, table, None)
        else:
            layers = unstacked(self.variables["params"]["layers"], config.num_layers)
            written = []
            for index, layer in enumerate(layers):
                cache = None if caches is None else caches[index]
                block = Block(config, parent=None)
                x, cache = block.apply({"params": layer}, x, positions, table, cache)
                written.append(cache)
            caches = None if caches is None else tuple(written)
        scale = self.param("final_norm", nn.initializers.ones, (config.width,), kept)
        return rms_norm(x, scale[None, None], config.norm_epsilon), caches
