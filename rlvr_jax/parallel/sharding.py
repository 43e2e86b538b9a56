"""Where parameters and rollouts lie on a mesh."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jax.sharding import Mesh, NamedSharding, PartitionSpec

from rlvr_jax.policy import ModelConfig, ParameterEntry, lora, parameter_table
from rlvr_jax.policy.layout import ROWS

__all__ = ["LOGICAL_TO_MESH"]
__all__ += ["adapter_shardings", "parameter_shardings", "replicated", "row_sharding"]

LOGICAL_TO_MESH: Mapping[str, str | None] = {
    "vocab": "tensor",
    "heads": "tensor",
    "kv_heads": "tensor",
    "mlp": "tensor",
    "expert": "tensor",
    "embed": "fsdp",
    "head": None,
    "inner": None,
    "choice": None,
    "rank": None,
}
"""The sharding table: logical axis of a parameter to mesh axis; None is replicated."""


def parameter_shardings(config: ModelConfig, mesh: Mesh) -> dict[str, Any]:
    """Shardings of a policy's parameters without adapters, in the structure of the parameters.

    Raises:
      ValueError: a mesh axis that does not divide the axis of a parameter it lies on.
    """
    sizes = {
        "vocab": config.vocab_size,
        "heads": config.num_heads * config.head_size,
        "kv_heads": config.num_kv_heads * config.head_size,
        "expert" if config.num_experts else "mlp": config.num_experts or config.mlp_width,
        "embed": config.width,
    }
    for name, size in sizes.items():
        parts = mesh.shape[LOGICAL_TO_MESH[name]]
        if size % parts:
            raise ValueError(
                f"parameter_shardings: mesh axis {LOGICAL_TO_MESH[name]} must divide {name} ="
                f" {size} of the model, got size {parts}"
            )
    shardings = _shardings(parameter_table(config), mesh)
    if config.num_experts:
        shardings["layers"]["mlp_output"] = NamedSharding(mesh, _of_outputs(config, mesh))
    return shardings


def _of_outputs(config: ModelConfig, mesh: Mesh) -> PartitionSpec:
    """Experts' outputs, [layer, expert, inner, width], over fsdp by the first axis that is divided.

    What a TPU gathers by the last axis it copies into another order: of qwen3-30b-a3b on a v6e-32 a
    quarter of scoring, by the compiler's estimate. By the inner axis it copies parts that are no
    whole tiles, as 768 / 64.
    """
    tensor, fsdp = LOGICAL_TO_MESH["expert"], LOGICAL_TO_MESH["embed"]
    if config.num_experts % (mesh.shape[tensor] * mesh.shape[fsdp]) == 0:
        return PartitionSpec(None, (tensor, fsdp))
    if config.mlp_width % mesh.shape[fsdp] == 0:
        return PartitionSpec(None, tensor, fsdp)
    return PartitionSpec(None, tensor, None, fsdp)


def adapter_shardings(config: ModelConfig, mesh: Mesh) -> dict[str, Any]:
    """Shardings of a policy's low-rank adapter: like the matrices it adapts, the rank in one piece.

    The mesh is one that `parameter_shardings` takes.
    """
    return _shardings(lora.adapter_table(config), mesh)


def row_sharding(mesh: Mesh) -> NamedSharding:
    """Sharding of arrays whose first axis is rollouts: over data and fsdp."""
    return NamedSharding(mesh, PartitionSpec(ROWS))


def replicated(mesh: Mesh) -> NamedSharding:
    """Sharding of what every device has whole."""
    return NamedSharding(mesh, PartitionSpec())


def _shardings(table: list[ParameterEntry], mesh: Mesh) -> dict[str, Any]:
    shardings: dict[str, Any] = {}
    for entry in table:
        axes = [LOGICAL_TO_MESH[axis] for axis in entry.axes]
        if entry.path[0] == "layers":
            axes = [None, *axes]
        node = shardings
        for part in entry.path[:-1]:
            node = node.setdefault(part, {})
        node[entry.path[-1]] = NamedSharding(mesh, PartitionSpec(*axes))
    return shardings
