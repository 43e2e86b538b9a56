"""The mesh: devices in a grid with the axes data, fsdp and tensor."""

from __future__ import annotations

import math

import jax
from jax.sharding import AxisType, Mesh

__all__ = ["MESH_AXES", "make_mesh"]

MESH_AXES = ("data", "fsdp", "tensor")


def make_mesh(spec: str = "") -> Mesh:
    """Builds the mesh of a text like "data=2,fsdp=4".

    Args:
      spec: sizes of some of the axes, which must multiply to the number of devices; axes that are
        not named have size 1. Empty: all devices on `data`.
    Raises:
      ValueError: an unknown or repeated axis, a size that is no positive integer, or sizes that do
        not multiply to the number of devices.
    """
    devices = jax.devices()
    sizes: dict[str, int] = {}
    for part in filter(None, spec.split(",")):
        name, equals, text = part.strip().partition("=")
        if not equals or name not in MESH_AXES or name in sizes:
            raise ValueError(
                f"make_mesh: spec must be axis=size pairs of {', '.join(MESH_AXES)}, got {spec!r}"
            )
        if not text.isdecimal() or int(text) < 1:
            raise ValueError(f"make_mesh: size of {name} must be a positive integer, got {text!r}")
        sizes[name] = int(text)
    if not sizes:
        sizes["data"] = len(devices)
    if math.prod(sizes.values()) != len(devices):
        raise ValueError(
            f"make_mesh: sizes must multiply to the {len(devices)} devices, got {spec!r}"
        )
    shape = tuple(sizes.get(name, 1) for name in MESH_AXES)
    return jax.make_mesh(shape, MESH_AXES, axis_types=(AxisType.Auto,) * len(MESH_AXES))
