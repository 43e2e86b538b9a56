"""Use of the matrix units by the TPU kernel, by the static schedule. No TPU is needed.

    python -m experiments.tpu_schedule v5e --width 3584 --vocabulary 152064

The compiler of PyPI's `libtpu` records the units that each instruction bundle uses. The result is
the fraction of the matrix units' slots in use in the bundles of one step of the grid. Branches that
a step in the middle does not take are excluded. A schedule does not wait for memory, so this is an
estimate, not a measurement.
"""

import argparse
import json
import os
import re
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

# The smallest slice of each chip, and its peak in bfloat16 per JAX device, in TFLOP/s (Google's
# published numbers; a tpu7x chip is two devices).
TOPOLOGIES = {
    "v4": ("v4:2x2x1", 275),
    "v5e": ("v5e:2x2", 197),
    "v5p": ("v5p:2x2x1", 459),
    "v6e": ("v6e:2x2", 918),
    "tpu7x": ("tpu7x:2x2x1", 1153),
}
SECOND_ORDER = ("logp", "logsumexp", "entropy", "p_squared", "p_squared_logp")
# A predicated region shorter than this starts or awaits a copy, which every step does.
_SHORT = 100
_MATRIX_UNIT = {"MATMUL", "MXU"}  # its name differs by the version of libtpu


class Schedule(NamedTuple):
    """Numbers of a kernel from the compiler's dump.

    Fields:
      bundles: instruction bundles that a step of the grid runs through.
      matrix_fraction: fraction of the matrix units' slots in use in them.
    """

    bundles: int
    matrix_fraction: float


def read_schedule(folder: Path, kernel: str) -> Schedule:
    """Reads the largest kernel of that name from a folder of `--xla_jf_dump_llo_text` files."""
    pattern = f"*{kernel}*final_hlo-static-per-bundle-utilization.txt"
    table = max(folder.glob(pattern), key=lambda path: path.stat().st_size)
    lines = table.read_text().splitlines()
    titles = [title.strip() for title in lines[1].split(",")]
    (column,) = (i for i, title in enumerate(titles) if title in _MATRIX_UNIT)
    capacity = int(lines[2].split()[column])
    start = next(i for i, line in enumerate(lines) if line.startswith("== UTIL")) + 1
    used = [int(line.split()[column]) for line in lines[start:]]
    prefix = re.match(r"\d+-.+?-(?=\d+-)", table.name)[0]  # time and kernel, before the pass
    (code,) = (
        path for path in folder.glob(f"{prefix}*final_bundles.txt") if "analysis" not in path.name
    )
    skipped = _long_branches(code.read_text())
    taken = [slots for index, slots in enumerate(used) if index not in skipped]
    return Schedule(len(taken), sum(taken) / (capacity * len(taken)))


def _long_branches(code: str) -> set[int]:
    """Bundles between a forward branch and its fall-through, if there are many."""
    skipped, branch = set(), None
    for line in code.splitlines():
        found = re.match(r"\s*(0x[0-9a-f]+|0)\s+(PF)?", line)
        if not found:
            continue
        address = int(found[1], 16)
        if found[2] and branch is not None:
            if address - branch > _SHORT:
                skipped |= set(range(branch + 1, address))
            branch = None
        if "sbr.rel" in line and branch is None:
            branch = address
    return skipped


def _compile(chip, tokens, width, vocabulary, needs):
    """The forward kernel's program for one device of the chip, in bfloat16."""
    import jax
    import jax.numpy as jnp
    from jax.experimental import topologies
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    from rlvr_jax.kernels.token_stats import token_stats

    topology = topologies.get_topology_desc(platform="tpu", topology_name=TOPOLOGIES[chip][0])
    mesh = Mesh(topology.devices[:1], ("data",))

    def array(shape, dtype):
        sharding = NamedSharding(mesh, PartitionSpec())
        return jax.ShapeDtypeStruct(shape, dtype, sharding=sharding)

    def statistics(hidden, unembedding, targets):
        return token_stats(hidden, unembedding, targets, needs=needs, implementation="pallas_tpu")

    with jax.sharding.use_abstract_mesh(mesh.abstract_mesh):
        lowered = jax.jit(statistics).lower(
            array((tokens, width), jnp.bfloat16),
            array((vocabulary, width), jnp.bfloat16),
            array((tokens,), jnp.int32),
        )
        return lowered.compile()


def main() -> None:
    """Compiles the kernel for the chip and prints one JSON object about it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("chip", choices=TOPOLOGIES, help="the kind of TPU")
    parser.add_argument("--tokens", type=int, default=8192, help="rows of hidden states")
    parser.add_argument("--width", type=int, default=3584, help="width of the hidden states")
    parser.add_argument("--vocabulary", type=int, default=152064, help="rows of the unembedding")
    parser.add_argument(
        "--needs", nargs="+", default=SECOND_ORDER, metavar="STATISTIC", help="fields of TokenStats"
    )
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        # Read by libtpu when it is loaded, which happens below.
        os.environ["LIBTPU_INIT_ARGS"] = f"--xla_jf_dump_to={folder} --xla_jf_dump_llo_text=true"
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
        os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")
        os.environ.setdefault("ALLOW_MULTIPLE_LIBTPU_LOAD", "true")
        began = time.perf_counter()
        program = _compile(args.chip, args.tokens, args.width, args.vocabulary, tuple(args.needs))
        seconds = time.perf_counter() - began
        schedule = read_schedule(Path(folder), "token_stats")
    floor = 2 * args.tokens * args.width * args.vocabulary / TOPOLOGIES[args.chip][1] / 1e12
    row = {
        "chip": args.chip,
        "shape": [args.tokens, args.width, args.vocabulary],
        "matrix_fraction": round(schedule.matrix_fraction, 3),
        "bundles_per_step": schedule.bundles,
        "milliseconds_at_peak": round(1e3 * floor, 1),
        "milliseconds_at_fraction": round(1e3 * floor / schedule.matrix_fraction, 1),
        "temporary_mebibytes": round(program.memory_analysis().temp_size_in_bytes / 2**20, 2),
        "compile_seconds": round(seconds, 1),
    }
    print(json.dumps(row))


if __name__ == "__main__":
    main()
