"""Slices of TPUs by the names that users rent them under, for compilers on machines without any.

    describe("v5e-256").devices()

A name is a chip and a number. It counts chips for v5e (also v5litepod) and v6e. It counts cores,
two per chip, for v4, v5p and tpu7x. `cpu:8` is eight devices of this host.
"""

import contextlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax

TESTED: Mapping[str, tuple[str, ...]] = {
    "jax": ("0.10.2",),
    "jaxlib": ("0.10.2",),
    "libtpu": ("0.0.42.1", "0.0.51"),
}
"""Tested versions. For libtpu the one that `.[tpu]` installs, and a newer one."""

_GIBIBYTE = 2**30


@dataclass(frozen=True)
class Chip:
    """Memory and peak rates of one JAX device of a chip.

    Fields:
      platform_name: of the chip in libtpu's names of topologies.
      hbm_bytes: usable part of the device's memory, as libtpu's compiler reports when a program
        does not fit.
      flops: peak of bfloat16 products, FLOP/s.
      clock: of the matrix units, Hz, at which that peak is reached.
      hbm_bandwidth: bytes/s.
      ici_bandwidth: bytes/s to other chips, in one direction over all links together.
      cores_counted: the number in a slice's name over its number of chips.
      devices_per_chip: JAX devices.
      layouts: chips along each axis of the slices, by number of chips.
      options: of libtpu's description of the topology.
    """

    platform_name: str
    hbm_bytes: int
    flops: float
    clock: float
    hbm_bandwidth: float
    ici_bandwidth: float
    cores_counted: int
    devices_per_chip: int
    layouts: Mapping[int, tuple[int, ...]]
    options: Mapping[str, Any]


_FLAT = {
    1: (1, 1),
    4: (2, 2),
    8: (2, 4),
    16: (4, 4),
    32: (4, 8),
    64: (8, 8),
    128: (8, 16),
    256: (16, 16),
}
_CUBES = {
    4: (2, 2, 1),
    8: (2, 2, 2),
    16: (2, 2, 4),
    32: (2, 4, 4),
    64: (4, 4, 4),
    128: (4, 4, 8),
    256: (4, 8, 8),
    512: (8, 8, 8),
    1024: (8, 8, 16),
    2048: (8, 16, 16),
    4096: (16, 16, 16),
}


def _chip(name, *, gibibytes, tflops, gigahertz, hbm, ici, cores, devices=1, **options) -> Chip:
    return Chip(
        name,
        int(gibibytes * _GIBIBYTE),
        tflops * 1e12,
        gigahertz * 1e9,
        hbm * 1e9,
        ici * 1e9,
        cores,
        devices,
        _FLAT if cores == 1 else _CUBES,
        options,
    )


# Rates: https://docs.cloud.google.com/tpu/docs/{v4,v5e,v5p,v6e,tpu7x}, halved for the two devices
# of a tpu7x chip; links are given there in both directions together. Memory: libtpu 0.0.51.
CHIPS: Mapping[str, Chip] = {
    "v4": _chip(
        "v4",
        gibibytes=30.75,
        tflops=275,
        gigahertz=1.05,
        hbm=1200,
        ici=300,
        cores=2,
        chip_config_name="megacore",
    ),
    "v5e": _chip("v5e", gibibytes=15.75, tflops=197, gigahertz=1.5, hbm=819, ici=200, cores=1),
    "v5p": _chip("v5p", gibibytes=95.73, tflops=459, gigahertz=1.75, hbm=2765, ici=600, cores=2),
    "v6e": _chip("v6e", gibibytes=31.24, tflops=918, gigahertz=1.75, hbm=1640, ici=400, cores=1),
    "tpu7x": _chip(
        "tpu7x",
        gibibytes=94.74,
        tflops=1153.5,
        gigahertz=2.2,
        hbm=3690,
        ici=300,
        cores=2,
        devices=2,
    ),
}
"""By the name that users know."""

_OTHER_NAMES = {"v5litepod": "v5e"}


@dataclass(frozen=True)
class Topology:
    """A slice of TPUs, or devices of this host.

    Fields:
      name: as it was requested.
      chip: None for devices of this host.
      num_devices: JAX devices.
      hbm_bytes: usable part of each device's memory.
      layout: libtpu's name of it.
    """

    name: str
    chip: Chip | None
    num_devices: int
    hbm_bytes: int
    layout: str

    def devices(self) -> list[Any]:
        """Devices to compile for.

        Raises:
          ValueError: libtpu is not installed, does not know the topology, or this host has fewer
            devices.
        """
        if self.chip is None:
            found = _host_devices(self.num_devices)
            if len(found) < self.num_devices:
                raise ValueError(
                    f"topology must have at most the {len(found)} devices that JAX was started"
                    f" with on this host, got {self.name!r}"
                )
            return found[: self.num_devices]
        return _tpu_devices(self, self.chip)


def describe(name: str) -> Topology:
    """The topology of a name such as "v5e-256" or "cpu:8".

    Raises:
      ValueError: an unknown chip, or a size that its slices do not have.
    """
    if host := re.fullmatch(r"cpu:([1-9]\d*)", name):
        number = int(host[1])
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return Topology(name, None, number, memory // number, name)
    kind, dash, size = name.partition("-")
    kind = _OTHER_NAMES.get(kind, kind)
    if kind not in CHIPS or not dash or not size.isdecimal():
        raise ValueError(
            f"topology must be one of {', '.join(CHIPS)} with a size, like v5e-256 or v5p-128,"
            f" or cpu:8, got {name!r}"
        )
    chip = CHIPS[kind]
    sizes = {chips * chip.cores_counted: layout for chips, layout in chip.layouts.items()}
    if int(size) not in sizes:
        known = ", ".join(str(size) for size in sizes)
        counted = "cores" if chip.cores_counted > 1 else "chips"
        raise ValueError(f"topology: {kind} comes with {known} {counted}, got {name!r}")
    layout = sizes[int(size)]
    chips = int(size) // chip.cores_counted
    return Topology(
        name,
        chip,
        chips * chip.devices_per_chip,
        chip.hbm_bytes,
        f"{chip.platform_name}:{'x'.join(map(str, layout))}",
    )


def _host_devices(number: int) -> list[Any]:
    with contextlib.suppress(RuntimeError):  # JAX runs already, with the devices that it has
        jax.config.update("jax_num_cpu_devices", number)
    return jax.devices("cpu")


def _tpu_devices(topology: Topology, chip: Chip) -> list[Any]:
    from jax.experimental import topologies

    # No TPU is asked for its surroundings, of which libtpu would complain, and another process may
    # have the library loaded.
    surroundings = {
        "TPU_SKIP_MDS_QUERY": "1",
        "TPU_ACCELERATOR_TYPE": topology.name,
        "TPU_WORKER_HOSTNAMES": "localhost",
        "ALLOW_MULTIPLE_LIBTPU_LOAD": "true",
    }
    for name, value in surroundings.items():
        os.environ.setdefault(name, value)
    options = dict(chip.options)
    if topology.num_devices == 1:
        options["chips_per_host_bounds"] = [1, 1, 1]
    try:
        described = topologies.get_topology_desc(topology.layout, "tpu", **options)
    except Exception as error:  # libtpu's absence has no type of its own
        raise ValueError(
            f"topology {topology.name!r} needs the compiler of libtpu: pip install"
            f" libtpu=={TESTED['libtpu'][-1]} ({str(error).splitlines()[0]})"
        ) from None
    return list(described.devices)
