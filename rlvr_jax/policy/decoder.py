"""A decoder of the Qwen2, Qwen3, Llama 3, Gemma 3 or Qwen3-MoE kind, as Flax modules.

It has root-mean-square norms, rotary positions, grouped-query attention and gated MLPs. The
differences of the families are fields of `ModelConfig`. Layers are scanned over stacked parameters,
so compile time does not grow with depth. Shallow models are unrolled. Models that extend a cache by
one token are also unrolled, because a cache with one array per layer is updated in place.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.policy import bitwise, products
from rlvr_jax.policy.attention import (
    Groups,
    Heads,
    Paths,
    attend_in_groups,
    attend_in_order,
    attend_in_tree,
)
from rlvr_jax.policy.cached import LayerCache, SharedCache, attend_to_cache, written
from rlvr_jax.policy.config import ModelConfig, wide_dtype
from rlvr_jax.policy.experts import Experts, mixture
from rlvr_jax.policy.layout import HEADS, ROWS, WIDTH, constrain, on_tpu
from rlvr_jax.policy.rope import RotaryTable, rotary, rotary_tables

# A scan stacks what the backward pass needs, a third of the time of a shallow model's gradient.
MOST_UNROLLED_LAYERS = 4
_NORMAL = nn.initializers.normal(0.02)
_ACTIVATIONS = {"silu": nn.silu, "gelu_tanh": partial(nn.gelu, approximate=True)}
_REMAT_POLICIES = {
    "layers": jax.checkpoint_policies.nothing_saveable,
    "attention": jax.checkpoint_policies.dots_with_no_batch_dims_saveable,
}


def unstacked(layers: Any, num_layers: int) -> tuple[Any, ...]:
    """The parameters of each layer, from stacked ones; those of a tuple are taken as they are."""
    return layers if isinstance(layers, tuple) else _each(layers, num_layers)


def _each(stacked: Any, number: int) -> tuple[Any, ...]:
    return tuple(jax.tree.map(lambda leaf, i=i: leaf[i], stacked) for i in range(number))


def _rms_norm(x: Array, scale: Array, config: ModelConfig) -> Array:
    """x / √(mean x² + ε) · scale over the last axis; in float32, returned in x's dtype."""
    scale = (1 + scale if config.unit_offset else scale).astype(wide_dtype(x.dtype))

    def norm(x):
        wide = x.astype(scale.dtype)
        square = jnp.square(wide)
        if config.bitwise:
            mean_square = bitwise.total(square)[..., None] / x.shape[-1]
        else:
            mean_square = jnp.mean(square, axis=-1, keepdims=True)
        factor = scale.reshape((1,) * (x.ndim - 1) + scale.shape)
        return (wide * jax.lax.rsqrt(mean_square + config.norm_epsilon) * factor).astype(x.dtype)

    return bitwise.by_rows(norm, x) if config.bitwise else norm(x)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _gated(activation: Callable[[Array], Array], gate: Array, x: Array) -> Array:
    """activation(gate) · x, of which only the arguments are stored for the backward pass."""
    return activation(gate) * x


def _gated_backward(activation, residuals, cotangent):
    gate, x = residuals
    value, slope = jax.jvp(activation, (gate,), (jnp.ones_like(gate),))
    return cotangent * x * slope, cotangent * value


_gated.defvjp(lambda activation, gate, x: (activation(gate) * x, (gate, x)), _gated_backward)


def _norm_initializer(config: ModelConfig) -> Any:
    """Initializer of a norm's weights: such that the norm starts with factor 1."""
    return nn.initializers.zeros if config.unit_offset else nn.initializers.ones


class Places(NamedTuple):
    """The positions of the tokens of a call, for all layers.

    Fields:
      positions: [B, S].
      tables: result of `rotary_tables`.
      paths: the sequence is made of blocks of trees; None: it is not.
    """

    positions: Int[Array, "B S"]
    tables: tuple[RotaryTable, ...]
    paths: Paths | None


class Block(nn.Module):
    """One layer: attention and MLP, each after a norm and added to the stream."""

    config: ModelConfig
    mesh: Mesh | None = None
    groups: Groups | None = None

    @nn.compact
    def __call__(
        self,
        x: Float[Array, "B S D"],
        places: Places,
        cache: LayerCache | SharedCache | None,
        sliding: Bool[Array, ""],
        routes: Int[Array, "B S k"] | None = None,
    ) -> tuple[Array, tuple[LayerCache | SharedCache | None, Array | None]]:
        """Returns the new stream, the cache with this call's keys and values written into it, and
        the used routes.

        Without a cache, attention is causal in the order of the sequence, whatever `positions` say;
        with one, a query sees the slots up to its own position. In groups, a token sees what stands
        up to its own position in its prompt and its response.

        Args:
          sliding: this layer has the sliding window; read only if some layers have one.
          routes: as for `mixture`.
        """
        config = self.config
        positions, tables, paths = places
        heads, kv_heads, size = config.num_heads, config.num_kv_heads, config.head_size
        dtype = x.dtype
        param_dtype = wide_dtype(config.compute_dtype)
        batch, length, width = x.shape
        matmul = bitwise.matmul if config.bitwise else products.matmul

        def norm(y, name):
            scale = self.param(name, _norm_initializer(config), y.shape[-1:], param_dtype)
            return _rms_norm(y, scale, config)

        def project(y, name, outputs, bias=False, lies=((), HEADS)):
            kernel = self.param(name, _NORMAL, (y.shape[-1], outputs), param_dtype).astype(dtype)
            if cache is None:
                # Gathered over fsdp in the products' dtype. Left alone, the partitioner sends parts
                # around and adds up as many products: on TPUs up to six times as long (estimated).
                kernel = constrain(kernel, self.mesh, *lies)
            # Two axes: XLA:CPU runs the kernel's gradient over (B, S) as one matrix product.
            rows = y.reshape(-1, y.shape[-1])
            y = matmul(rows, kernel)
            if bias:
                offset = self.param(f"{name}_bias", nn.initializers.zeros, (outputs,), param_dtype)
                # Its gradient is a sum over all tokens: not one in the products' dtype.
                y = (y.astype(param_dtype) + offset.astype(param_dtype)[None]).astype(dtype)
            if self.has_variable("params", f"{name}_lora_a"):
                if config.lora is None:
                    raise ValueError(
                        "config.lora must be the LoraConfig of the adapter in the parameters, got"
                        " None"
                    )
                down, up = (self.get_variable("params", f"{name}_lora_{side}") for side in "ab")
                factor = config.lora.alpha / config.lora.rank
                inner = matmul(rows, down.astype(dtype))
                y += matmul(inner, up.astype(dtype)) * factor
            return y.reshape(batch, length, outputs)

        def split(y, name, count):
            y = y.reshape(batch, length, count, size)
            if config.qk_norm and name != "value":
                y = norm(y, f"{name}_norm")
            return constrain(y, self.mesh, ROWS, (), HEADS)

        def spread(y):
            # What the backward pass keeps of a layer is the stream before it, and every device of
            # tensor had a copy. Its width is split over them: what the parts of a product add up to
            # is shared out, and gathered again behind the next norm.
            return constrain(y, self.mesh, ROWS, (), WIDTH) if cache is None else y

        def gathered(y):
            return constrain(y, self.mesh, ROWS) if cache is None else y

        def settled(y):
            # Written before a product reads it. Made within the product it is made anew for each
            # block of the result: on a v6e an MLP takes up to a third longer so (estimated).
            return jax.lax.optimization_barrier(y) if cache is None and on_tpu(self.mesh) else y

        y = gathered(norm(x, "attention_norm"))
        query = split(project(y, "query", heads * size, config.qkv_bias), "query", heads)
        key = split(project(y, "key", kv_heads * size, config.qkv_bias), "key", kv_heads)
        value = split(project(y, "value", kv_heads * size, config.qkv_bias), "value", kv_heads)
        table = tables[0]
        if config.sliding_layers:
            table = jax.tree.map(lambda far, near: jnp.where(sliding, near, far), *tables)
        mesh = self.mesh
        query, key = (rotary(each, table, by_product=on_tpu(mesh)) for each in (query, key))

        own = Heads(query, key, value)
        if paths is not None:
            y = attend_in_tree(own, paths, sliding, config, mesh)
        elif self.groups is not None:
            y = attend_in_groups(own, positions, self.groups, sliding, config, mesh)
        elif cache is None:
            order = jnp.arange(length, dtype=positions.dtype)[None]
            y = attend_in_order(own, order, sliding, config, mesh)
        else:
            cache = written(cache, key, value, positions, mesh)
            y = attend_to_cache(query, cache, positions, sliding, config)
        y = spread(project(y, "attention_output", width, lies=(HEADS,)))
        x = x + (norm(y, "attention_output_norm") if config.output_norms else y)

        y = settled(gathered(norm(x, "mlp_norm")))
        activation = _ACTIVATIONS[config.activation]
        if config.num_experts is None or config.experts_per_token is None:
            opened, passed = (project(y, name, config.mlp_width) for name in ("gate", "up"))
            y = settled(_gated(activation, opened, passed))
            y = project(y, "mlp_output", width, lies=(HEADS,))
        else:
            experts, inner = config.num_experts, config.mlp_width
            shapes = {
                "router": (width, experts),
                "gate": (experts, width, inner),
                "up": (experts, width, inner),
                "mlp_output": (experts, inner, width),
            }
            matrices = (
                self.param(n, _NORMAL, s, param_dtype).astype(dtype) for n, s in shapes.items()
            )
            y, used = mixture(
                y.reshape(-1, width),
                Experts(*matrices),
                activation=activation,
                experts_per_token=config.experts_per_token,
                normalized=config.normalized_experts,
                mesh=mesh,
                routes=None if routes is None else routes.reshape(batch * length, -1),
            )
            y = y.reshape(batch, length, width)
            routes = None if used is None else used.reshape(batch, length, -1)
        y = spread(y)
        x = x + (norm(y, "mlp_output_norm") if config.output_norms else y)
        x = constrain(x, self.mesh, ROWS, (), WIDTH if cache is None else ())
        return x, (cache, routes)


class Decoder(nn.Module):
    """Embedding, layers, last norm; returns hidden states, never logits.

    Fields:
      groups: sizes of the parts of a sequence with one prompt and several responses. It is None
        with one response, and with a cache.
    """

    config: ModelConfig
    mesh: Mesh | None = None
    groups: Groups | None = None

    @nn.compact
    def __call__(
        self,
        tokens: Int[Array, "B S"] | Float[Array, "B S D"],
        positions: Int[Array, "B S"],
        caches: tuple[LayerCache | SharedCache, ...] | None = None,
        hook: Callable[[int, Array], Array] | None = None,
        routes: Int[Array, "B S L k"] | None = None,
        paths: Paths | None = None,
    ) -> tuple[Float[Array, "B S D"], tuple[LayerCache | SharedCache, ...] | None, Array | None]:
        """Hidden states after the last norm, the caches with this call's keys and values, and the
        used routes.

        Args:
          tokens: ids, or vectors in place of their rows of the embedding.
          hook: (layer, the stream after it) -> the stream that goes on; layers are then unrolled.
          routes: of each layer, as for `mixture`; None: the router chooses, and none are returned.
          paths: as for `Block`; without caches only.
        """
        config = self.config
        param_dtype = wide_dtype(config.compute_dtype)
        embedding = self.param("embedding", _NORMAL, (config.vocab_size, config.width), param_dtype)
        if not config.tied:
            self.param("unembedding", _NORMAL, (config.vocab_size, config.width), param_dtype)
        ids = tokens.ndim == 2
        x = (embedding[tokens] if ids else tokens).astype(config.compute_dtype)
        if ids and caches is None:
            # Looked up by width, as the table lies over fsdp, and then exchanged for rows: what is
            # sent is the stream, and neither the table nor its gradient is whole on any device.
            x = constrain(x, self.mesh, ("data",), (), ("fsdp",))
        if config.scaled_embedding:
            x = x * jnp.sqrt(jnp.asarray(config.width, param_dtype)).astype(x.dtype)
        x = constrain(x, self.mesh, ROWS, (), WIDTH if caches is None else ())
        # Without a cache only: decoding has no backward pass.
        remat = None if caches is not None else _REMAT_POLICIES.get(config.remat)
        block = Block
        if remat is not None:
            block = nn.remat(Block, policy=remat, prevent_cse=False)
        # It takes of all layers what a block takes of one; flax has no types for that.
        axes: Any = nn.broadcast, 0, 0, 0
        stack: Any = nn.scan(
            block,
            variable_axes={"params": 0},
            split_rngs={"params": True},
            in_axes=axes,
            length=config.num_layers,
        )(config, self.mesh, self.groups, name="layers")
        places = Places(positions, rotary_tables(positions, config), paths)
        sliding = np.isin(np.arange(config.num_layers), config.sliding_layers)
        scanned = config.num_layers > MOST_UNROLLED_LAYERS
        if caches is not None:
            # Many tokens at once pay for copies of the caches; one does not.
            stored = self.variables["params"]["layers"]
            scanned &= tokens.shape[1] > 1 and not isinstance(stored, tuple)
        scanned &= hook is None
        if self.is_initializing() or scanned:
            together = caches and jax.tree.map(lambda *layers: jnp.stack(layers), *caches)
            by_layer = None if routes is None else jnp.moveaxis(routes, 2, 0)
            x, (together, used) = stack(x, places, together, sliding, by_layer)
            caches = caches and _each(together, config.num_layers)
            routes = None if used is None else jnp.moveaxis(used, 0, 2)
        else:

            def run(layer, x, cache, sliding, routes):
                block = Block(config, self.mesh, self.groups, parent=None)
                return block.apply({"params": layer}, x, places, cache, sliding, routes)

            if remat is not None:
                run = jax.checkpoint(run, policy=remat)
            layers = unstacked(self.variables["params"]["layers"], config.num_layers)
            extended, used = [], []
            for index, layer in enumerate(layers):
                cache = None if caches is None else caches[index]
                own = None if routes is None else routes[:, :, index]
                x, (cache, own) = run(layer, x, cache, sliding[index], own)
                x = x if hook is None else hook(index, x)
                extended.append(cache)
                used.append(own)
            caches = None if caches is None else tuple(extended)
            routes = None if routes is None else jnp.stack(used, axis=2)
        scale = self.param("final_norm", _norm_initializer(config), (config.width,), param_dtype)
        x = _rms_norm(x, scale, config)
        return (x if caches is not None else constrain(x, self.mesh, ROWS)), caches, routes
