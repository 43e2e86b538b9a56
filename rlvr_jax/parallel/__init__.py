"""Meshes, shardings and processes: one program on every host, one mesh over all devices.

`make_mesh("data=2,fsdp=4")` builds the mesh. One table maps logical axes of parameters to mesh
axes; `parameter_shardings` and `row_sharding` use it for parameters and rollouts. `jit` does the
rest. `distribute` and `fetch` copy between host memory and devices. `start` connects the processes
of a job. `keep_programs` caches compiled functions on disk.
"""

from rlvr_jax.parallel.arrays import bytes_per_device, distribute, fetch, placed_shapes
from rlvr_jax.parallel.dtypes import faster_dtype
from rlvr_jax.parallel.mesh import (
    MESH_AXES,
    make_mesh,
    mesh_sizes,
    one_device_mesh,
    regrouped,
    row_shards,
)
from rlvr_jax.parallel.processes import (
    barrier,
    check_alone,
    first_says,
    gather,
    has_accelerator,
    is_first,
    must_stop,
    num_cores,
    start,
)
from rlvr_jax.parallel.programs import keep_programs
from rlvr_jax.parallel.sharding import (
    LOGICAL_TO_MESH,
    adapter_shardings,
    parameter_shardings,
    replicated,
    row_sharding,
)

__all__ = [
    "LOGICAL_TO_MESH",
    "MESH_AXES",
    "adapter_shardings",
    "barrier",
    "bytes_per_device",
    "check_alone",
    "distribute",
    "faster_dtype",
    "fetch",
    "first_says",
    "gather",
    "has_accelerator",
    "is_first",
    "keep_programs",
    "make_mesh",
    "mesh_sizes",
    "must_stop",
    "num_cores",
    "one_device_mesh",
    "parameter_shardings",
    "placed_shapes",
    "regrouped",
    "replicated",
    "row_sharding",
    "row_shards",
    "start",
]
