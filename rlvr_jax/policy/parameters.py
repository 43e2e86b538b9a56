"""The table of parameters: for every one its Hugging Face name, layout and logical axes."""

import functools
import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax

from rlvr_jax.policy.config import ModelConfig
from rlvr_jax.policy.model import Model


class ParameterEntry(NamedTuple):
    """The places of one parameter on both sides.

    Fields:
      path: keys into the parameter pytree; parameters below "layers" are stacked over layers.
      name: Hugging Face's name; `{layer}` and `{expert}` are the indices of layer and expert, over
        which the pytree's array is stacked.
      transposed: Hugging Face stores [out, in], the pytree [in, out].
      axes: logical axes of the pytree's array without the layer axis, for sharding.
    """

    path: tuple[str, ...]
    name: str
    transposed: bool
    axes: tuple[str, ...]

    @property
    def num_stacked(self) -> int:
        """Leading axes of the pytree's array that are files' tensors stacked."""
        return sum(f"{{{index}}}" in self.name for index in ("layer", "expert"))

    def names(self, *ranges: range) -> Iterator[tuple[tuple[int, ...], str]]:
        """Place on the stacked axes and name of each tensor, for indices from `ranges`."""
        for place in itertools.product(*ranges):
            index = dict(zip(("layer", "expert"), place, strict=False))
            yield place, self.name.format(**index)


def parameter_table(config: ModelConfig) -> list[ParameterEntry]:
    """All parameters of a decoder, in the names of its family."""
    layer = "model.layers.{layer}."

    def matrix(ours, theirs, axes):
        return ParameterEntry(("layers", ours), f"{layer}{theirs}.weight", True, axes)

    def vector(ours, theirs, axis):
        return ParameterEntry(("layers", ours), layer + theirs, False, (axis,))

    table = [
        ParameterEntry(("embedding",), "model.embed_tokens.weight", False, ("vocab", "embed")),
        ParameterEntry(("final_norm",), "model.norm.weight", False, ("embed",)),
        vector("attention_norm", "input_layernorm.weight", "embed"),
        matrix("query", "self_attn.q_proj", ("embed", "heads")),
        matrix("key", "self_attn.k_proj", ("embed", "kv_heads")),
        matrix("value", "self_attn.v_proj", ("embed", "kv_heads")),
        matrix("attention_output", "self_attn.o_proj", ("heads", "embed")),
    ]
    if config.output_norms:
        table += [
            vector("attention_output_norm", "post_attention_layernorm.weight", "embed"),
            vector("mlp_norm", "pre_feedforward_layernorm.weight", "embed"),
            vector("mlp_output_norm", "post_feedforward_layernorm.weight", "embed"),
        ]
    else:
        table.append(vector("mlp_norm", "post_attention_layernorm.weight", "embed"))
    if config.num_experts is None:
        table += [
            matrix("gate", "mlp.gate_proj", ("embed", "mlp")),
            matrix("up", "mlp.up_proj", ("embed", "mlp")),
            matrix("mlp_output", "mlp.down_proj", ("mlp", "embed")),
        ]
    else:
        expert = "mlp.experts.{expert}."
        table += [
            matrix("router", "mlp.gate", ("embed", "choice")),
            matrix("gate", f"{expert}gate_proj", ("expert", "embed", "inner")),
            matrix("up", f"{expert}up_proj", ("expert", "embed", "inner")),
            matrix("mlp_output", f"{expert}down_proj", ("expert", "inner", "embed")),
        ]
    if config.qkv_bias:
        table += [
            vector("query_bias", "self_attn.q_proj.bias", "heads"),
            vector("key_bias", "self_attn.k_proj.bias", "kv_heads"),
            vector("value_bias", "self_attn.v_proj.bias", "kv_heads"),
        ]
    if config.qk_norm:
        table += [
            vector("query_norm", "self_attn.q_norm.weight", "head"),
            vector("key_norm", "self_attn.k_norm.weight", "head"),
        ]
    if not config.tied:
        table.append(ParameterEntry(("unembedding",), "lm_head.weight", False, ("vocab", "embed")))
    return table


@functools.cache
def parameter_shapes(config: ModelConfig) -> Any:
    """Shapes and dtypes of a model's parameters; traced once however often it is loaded."""
    return jax.eval_shape(Model(config).init, jax.random.key(0))


def rounded(params: Any, dtype: str) -> Any:
    """Parameters in the dtype of the products; norms and biases stay as they are, in float32.

    A policy rounds the others where it uses them, so rounding them before changes no bit.
    """

    def of_leaf(path, leaf):
        wide = path[-1].key.endswith(("norm", "bias"))
        return leaf if wide else leaf.astype(dtype)

    return jax.tree_util.tree_map_with_path(of_leaf, params)


def parameter_at(tree: Any, path: tuple[str, ...]) -> Any:
    """The leaf of a parameter pytree, or of one with its structure, at a path."""
    return functools.reduce(lambda node, key: node[key], path, tree)
