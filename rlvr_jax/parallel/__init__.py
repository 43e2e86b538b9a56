"""Meshes and shardings: one table says which mesh axis a logical axis of a parameter lies on.

`make_mesh("data=2,fsdp=4")` builds the mesh, `parameter_shardings` and `row_sharding` say where
parameters and rollouts lie on it; `jit` does the rest.
"""

from rlvr_jax.parallel.mesh import MESH_AXES, make_mesh
from rlvr_jax.parallel.sharding import (
    LOGICAL_TO_MESH,
    adapter_shardings,
    parameter_shardings,
    row_sharding,
)

__all__ = [
    "LOGICAL_TO_MESH",
    "MESH_AXES",
    "adapter_shardings",
    "make_mesh",
    "parameter_shardings",
    "row_sharding",
]
