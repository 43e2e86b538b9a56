"""The mesh: devices in a grid with the axes data, fsdp and tensor."""

import math
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.experimental import mesh_utils
from jax.sharding import AxisType, Mesh

from rlvr_jax.policy.layout import ROWS

MESH_AXES = ("data", "fsdp", "tensor")

_TYPES = (AxisType.Auto,) * len(MESH_AXES)


def mesh_sizes(spec: str) -> dict[str, int]:
    """Sizes of all axes from a text like "data=2,fsdp=4"; 1 for those that are not named.

    Raises:
      ValueError: an unknown or repeated axis, or a size that is not a positive integer.
    """
    sizes: dict[str, int] = {}
    for part in filter(None, spec.split(",")):
        name, equals, text = part.strip().partition("=")
        if not equals or name not in MESH_AXES or name in sizes:
            raise ValueError(
                f"mesh must be axis=size pairs of {', '.join(MESH_AXES)}, got {spec!r}"
            )
        if not text.isdecimal() or int(text) < 1:
            raise ValueError(f"mesh: size of {name} must be a positive integer, got {text!r}")
        sizes[name] = int(text)
    return {name: sizes.get(name, 1) for name in MESH_AXES}


def row_shards(spec: str) -> int:
    """Parts that rows are split into over the devices of a mesh like "data=2,fsdp=4"."""
    sizes = mesh_sizes(spec)
    return math.prod(sizes[axis] for axis in ROWS)


def make_mesh(spec: str = "", devices: Sequence[Any] | None = None) -> Mesh:
    """Builds the mesh of a text like "data=2,fsdp=4" from all devices of all processes.

    Examples:
      >>> import jax
      >>> from rlvr_jax.parallel import make_mesh
      >>> dict(make_mesh("fsdp=1", jax.devices()[:1]).shape)
      {'data': 1, 'fsdp': 1, 'tensor': 1}

    Args:
      spec: as for `mesh_sizes`. Empty: all devices on `data`.
      devices: those of a topology to compile for; None: the present ones.
    Raises:
      ValueError: as `mesh_sizes`, or sizes that do not multiply to the number of devices.
    """
    count = jax.device_count() if devices is None else len(devices)
    sizes = mesh_sizes(spec or f"data={count}")
    if math.prod(sizes.values()) != count:
        raise ValueError(f"mesh: sizes must multiply to the {count} devices, got {spec!r}")
    shape = tuple(sizes.values())
    try:
        return jax.make_mesh(shape, MESH_AXES, axis_types=_TYPES, devices=devices)
    except NotImplementedError:
        # A size that is not a product of the torus's sides, as tensor=2 of 4 x 8 chips: JAX splits
        # a side by itself only on v5e.
        grid = mesh_utils.create_device_mesh(shape, devices, allow_split_physical_axes=True)
        return Mesh(grid, MESH_AXES, axis_types=_TYPES)


def one_device_mesh() -> Mesh:
    """A mesh of only the first device.

    Raises:
      ValueError: there are several processes, and only one would have a device.
    """
    if jax.process_count() > 1:
        raise ValueError(
            f"mesh must place {jax.device_count()} devices where {jax.process_count()} processes"
            " run, got ''"
        )
    return jax.make_mesh((1, 1, 1), MESH_AXES, axis_types=_TYPES, devices=jax.devices()[:1])


def regrouped(mesh: Mesh, spec: str) -> Mesh:
    """The devices of a mesh, in their order, as the mesh of another text.

    A jitted function can take arrays of one mesh and return arrays of the other.

    Raises:
      ValueError: as `mesh_sizes`, or sizes that do not multiply to the number of devices.
    """
    sizes = mesh_sizes(spec)
    if math.prod(sizes.values()) != mesh.size:
        raise ValueError(f"mesh: sizes must multiply to the {mesh.size} devices, got {spec!r}")
    devices = np.reshape(mesh.devices.reshape(-1), tuple(sizes.values()))
    return Mesh(devices, MESH_AXES, axis_types=_TYPES)
