"""A policy as pure functions of its parameters."""

import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, Mesh
from jaxtyping import Array, Float, Int

from rlvr_jax.policy import bitwise, products
from rlvr_jax.policy.attention import NOWHERE, Groups, Paths
from rlvr_jax.policy.cached import LayerCache, SharedCache, cached_heads
from rlvr_jax.policy.config import ModelConfig, wide_dtype
from rlvr_jax.policy.decoder import Decoder, unstacked
from rlvr_jax.policy.experts import no_routes
from rlvr_jax.policy.hooks import Hook
from rlvr_jax.policy.json_object import json_object
from rlvr_jax.policy.layout import HEADS, ROWS, constrain, platform
from rlvr_jax.policy.trees import PrefixTree, block_positions

Params = Any


def check_opening(opening: int, width: int) -> None:
    """Refuses an opening that prompts of that width cannot have."""
    if not width:
        raise ValueError(
            "prompt_tokens must hold the prompts, [B, P]: the last token of each predicts the first"
            " of its responses; got P = 0"
        )
    if not 0 <= opening < width:
        raise ValueError(
            f"opening must be in 0 … {width - 1} for prompts of {width}, got {opening}"
        )


@dataclass(frozen=True)
class Model:
    """Pure functions of (params, …) for a `ModelConfig`; hashable: it can be a static argument.

    Examples:
      >>> import jax.numpy as jnp
      >>> from rlvr_jax import policy, tasks
      >>> model, params = policy.load(tasks.load("brackets").base_model)
      >>> model.hidden(params, jnp.zeros((2, 3), jnp.int32)).shape
      (2, 3, 64)

    Fields:
      generation_config: text of the `generation_config.json` that was loaded with the weights,
        stored for servers of the folder that `save` writes; only `stop_tokens` reads it.
      mesh: devices of parameters and rows, with the axes data, fsdp and tensor
        (`rlvr_jax.parallel`); None for one device.
    Raises:
      ValueError: a mesh with axes of another type than Auto, as those of `jax.make_mesh` are.
      ValueError: `config.bitwise` without a CPU, or with a mesh that has more than data.
    """

    config: ModelConfig
    generation_config: str | None = None
    mesh: Mesh | None = None

    def __post_init__(self) -> None:
        types = () if self.mesh is None else self.mesh.axis_types
        if any(kind != AxisType.Auto for kind in types):
            raise ValueError(
                "Model: mesh must have axes of the type Auto, as those of"
                f" rlvr_jax.parallel.make_mesh, got {', '.join(kind.name for kind in types)}"
            )
        # The sampler divides rows over `data`, and computes them on each device without a mesh.
        split = self.mesh is not None and self.mesh.shape["data"] < self.mesh.size
        if self.config.bitwise and (split or platform(self.mesh) != "cpu"):
            shape = "no mesh" if self.mesh is None else dict(self.mesh.shape)
            raise ValueError(
                "Model: config.bitwise must be False except on a CPU with a mesh of only data, got"
                f" True on a {platform(self.mesh)} with {shape}"
            )

    @property
    def stop_tokens(self) -> tuple[int, ...]:
        """The ids of `eos_token_id` in `generation_config`, which end a response as the tokenizer's
        own end of sequence does; none if there is none.
        """
        if self.generation_config is None:
            return ()
        ids = json_object(self.generation_config, "generation_config.json").get("eos_token_id")
        listed = [] if ids is None else ids if isinstance(ids, list) else [ids]
        if any(type(index) is not int for index in listed):
            raise ValueError(
                f"generation_config.json: eos_token_id must be an id or a list of ids, got {ids!r}"
            )
        return tuple(listed)

    def init(self, key: jax.Array) -> Params:
        """Random parameters: normal(0, 0.02) matrices, zero biases, unit norms.

        They are float32, or float64 if the model computes in it.
        """
        tokens = jnp.zeros((1, 1), jnp.int32)
        return Decoder(self.config).init(key, tokens, tokens)["params"]

    def hidden(
        self,
        params: Params,
        tokens: Int[Array, "B S"],
        positions: Int[Array, "B S"] | None = None,
    ) -> Float[Array, "B S D"]:
        """Hidden states after the last norm; causal, so right padding changes nothing before it.

        Args:
          positions: rotary positions; 0 … S - 1 if None.
        """
        if positions is None:
            positions = jnp.arange(tokens.shape[1])[None]
        return self._decoded(params, tokens, positions)[0]

    def hidden_in_groups(
        self,
        params: Params,
        prompts: Int[Array, "P L"] | Float[Array, "P L D"],
        prompt_length: Int[Array, "P"],
        responses: Int[Array, "P G T"] | Float[Array, "P G T D"],
        opening: int = 0,
        *,
        routes: tuple[Int[Array, "P L n k"], Int[Array, "P G T n k"]] | None = None,
    ) -> tuple[Float[Array, "P l D"], Float[Array, "P G T D"]]:
        """Hidden states of prompts after their opening, and of G responses to each prompt.

        A prompt is computed once; so is the opening, on a mesh by each shard of the rows.

        Args:
          prompts: right-padded; both ids, or embeddings in their place, as for `extend`.
          opening: so many first tokens are the same in all prompts, none of which ends with them;
            l = L - opening are left of each.
          routes: of the tokens of prompts and responses in n layers, as for `experts.mixture`.
        Raises:
          ValueError: the prompts are not wider than their opening.
        """
        (number, width), (_, per_prompt, length) = prompts.shape[:2], responses.shape[:3]
        check_opening(opening, width)
        start, width = prompt_length[:, None].astype(jnp.int32), width - opening
        # One sequence for each prompt, or for all prompts of a shard, which have one opening.
        shards = 1 if self.mesh is None else math.prod(self.mesh.shape[axis] for axis in ROWS)
        batch = (shards if number % shards == 0 else 1) if opening else number
        groups = Groups(opening, number // batch, width, per_prompt)

        def together(first, own, answers, tail=0):
            sizes = groups.prompts * width, groups.prompts * per_prompt * length
            parts = (
                first,
                *(
                    x.reshape(batch, size, *x.shape[x.ndim - tail :])
                    for x, size in zip((own, answers), sizes, strict=True)
                ),
            )
            return jnp.concatenate(parts, axis=1)

        tail = responses.ndim - 3
        first = prompts[:: groups.prompts, :opening]
        tokens = together(first, prompts[:, opening:], responses, tail)
        own = opening + jnp.arange(width, dtype=jnp.int32)[None]
        # Padding has a position that no query sees.
        own = jnp.where(own < start, own, NOWHERE)
        answers = start + jnp.arange(length, dtype=jnp.int32)[None]
        answers = jnp.repeat(answers, per_prompt, axis=0)
        begin = jnp.broadcast_to(jnp.arange(opening, dtype=jnp.int32), (batch, opening))
        positions = together(begin, own, answers)
        if routes is not None:
            asked, answered = routes
            first = asked[:: groups.prompts, :opening]
            routes = together(first, asked[:, opening:], answered, 2)
        hidden, *_ = Decoder(self.config, self.mesh, groups).apply(
            {"params": params}, tokens, positions, routes=routes
        )
        border = opening + groups.prompts * width
        size = hidden.shape[-1]
        own = hidden[:, opening:border].reshape(number, width, size)
        return own, hidden[:, border:].reshape(*responses.shape[:3], size)

    def hidden_in_tree(self, params: Params, tree: PrefixTree) -> Float[Array, "R N D"]:
        """Hidden states of the tokens of a tree's blocks."""
        tokens = tree.tokens.reshape(len(tree.tokens), -1)
        paths = Paths(tree.path, tree.slot)
        decoder = Decoder(self.config, self.mesh)
        return decoder.apply({"params": params}, tokens, block_positions(tree), paths=paths)[0]

    def unembedding(self, params: Params) -> Float[Array, "V D"]:
        """The matrix that turns hidden states into logits."""
        return params["embedding" if self.config.tied else "unembedding"]

    def logits(self, params: Params, tokens: Int[Array, "B S"]) -> Float[Array, "B S V"]:
        """All logits, float32 or wider, for tests and notebooks: training never makes this."""
        return self.to_logits(params, self.hidden(params, tokens))

    def to_logits(self, params: Params, hidden: Float[Array, "... D"]) -> Float[Array, "... V"]:
        """Logits of hidden states; products accumulate in float32 or wider.

        The sampler's weights on a CPU can have `params["transposed_unembedding"]` [D, V], which is
        then used.
        """
        if self.config.bitwise:
            return bitwise.logits(hidden, self.unembedding(params), self.config.logit_softcap)
        wide = wide_dtype(hidden.dtype)
        if (columns := params.get("transposed_unembedding")) is not None:
            logits = products.einsum("...d,dv->...v", hidden, columns, preferred_element_type=wide)
        else:
            rows = self.unembedding(params).astype(hidden.dtype)
            logits = products.einsum("...d,vd->...v", hidden, rows, preferred_element_type=wide)
        cap = self.config.logit_softcap
        return logits if cap is None else cap * jnp.tanh(logits / cap)

    def empty_caches(self, rows: int, slots: int) -> tuple[LayerCache, ...]:
        """Zeroed caches of all layers for `rows` sequences of at most `slots` tokens."""
        config = self.config
        parts = 1 if self.mesh is None or self.mesh.size == 1 else self.mesh.shape["tensor"]
        heads = cached_heads(config, parts)

        def zeros(*shape):
            empty = jnp.zeros((rows, heads, *shape), config.compute_dtype)
            return constrain(empty, self.mesh, ROWS, HEADS)

        layer = LayerCache(zeros(config.head_size, slots), zeros(slots, config.head_size))
        return (layer,) * config.num_layers

    def shared_caches(
        self,
        prompts: tuple[LayerCache, ...],
        prompt_length: Int[Array, "R"],
        slots: int,
        origin: Int[Array, "R"] | None = None,
    ) -> tuple[SharedCache, ...]:
        """Empty caches of R rows that answer prompts, so many slots after each prompt.

        A bitwise model has no such caches.

        Args:
          prompts: results of `extend` for the P prompts; R / P adjacent rows answer each.
          origin: as in `SharedCache`, if rows begin at different times.
        """
        own = self.empty_caches(len(prompt_length), slots)
        return tuple(
            SharedCache(p, o, prompt_length, origin) for p, o in zip(prompts, own, strict=True)
        )

    def unstacked(self, params: Params) -> Params:
        """Parameters with a tuple of layers in place of stacked ones, for a loop of `extend`.

        Given stacked ones, the loop would copy every layer out of the stack in each of its rounds.
        Where the tuple is at hand beside the stack, as `params["unstacked"]`, it is taken.
        """
        stacked = {name: leaf for name, leaf in params.items() if name != "unstacked"}
        layers = params.get("unstacked", params["layers"])
        return {**stacked, "layers": unstacked(layers, self.config.num_layers)}

    def extend(
        self,
        params: Params,
        caches: tuple[LayerCache | SharedCache, ...],
        tokens: Int[Array, "B S"] | Float[Array, "B S D"],
        positions: Int[Array, "B S"],
    ) -> tuple[Float[Array, "B S D"], tuple[LayerCache | SharedCache, ...]]:
        """Hidden states of tokens at `positions` of sequences whose earlier tokens are cached.

        Keys and values are written to the slot of the position. A position at or after the number
        of slots writes nothing. The weights `params` may be `unstacked`.

        Args:
          tokens: ids, or embeddings in their place, as in `params["embedding"]`: before the factor
            of a config with `scaled_embedding`.
        """
        return self._decoded(params, tokens, positions, caches)[:2]

    def extend_routed(
        self,
        params: Params,
        caches: tuple[LayerCache | SharedCache, ...],
        tokens: Int[Array, "B S"] | Float[Array, "B S D"],
        positions: Int[Array, "B S"],
    ) -> tuple[Float[Array, "B S D"], tuple[LayerCache | SharedCache, ...], Int[Array, "B S n k"]]:
        """The results of `extend` and the routes of the tokens in n layers, see `experts.mixture`.

        Raises:
          ValueError: a model without experts.
        """
        routes = no_routes(self.config, *positions.shape)
        return self._decoded(params, tokens, positions, caches, None, routes)

    def hooked(
        self,
        params: Params,
        tokens: Int[Array, "B S"],
        positions: Int[Array, "B S"],
        hook: Hook,
        carry: Any,
        caches: tuple[LayerCache, ...] | None = None,
    ) -> tuple[Float[Array, "B S D"], tuple[LayerCache, ...] | None, Any]:
        """Hidden states with the stream changed after a layer, the caches, and the hook's carry.

        Without caches it is a full pass, causal in the order of the sequence; with them it goes on
        from the cache, as `extend` does. Equal changes at equal places have equal results.
        """
        if not 0 <= hook.layer < self.config.num_layers:
            raise ValueError(
                f"hooked: hook.layer must be in 0 … {self.config.num_layers - 1}, got {hook.layer}"
            )
        left = carry

        def apply(index, stream):
            nonlocal left
            if index == hook.layer:
                stream, left = hook.apply(stream, left)
            return stream

        hidden, caches, _ = self._decoded(params, tokens, positions, caches, apply)
        return hidden, caches, left

    def _decoded(self, params: Params, *given: Any) -> tuple[Array, Any, Any]:
        """What `Decoder` says of its arguments."""
        return Decoder(self.config, self.mesh).apply({"params": params}, *given)
