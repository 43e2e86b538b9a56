"""Cycles of one round of a threshold search on a TPU, by the static schedule. No TPU is needed.

    python -m experiments.selection_schedule v5e --rows 512 --tokens 2048

A search for a threshold spends its time on counting the tokens above a candidate. The compiler of
PyPI's `libtpu` records the instruction bundles of two programs: XLA's fusion, which counts for one
candidate and settles one bit of the threshold, and the kernel of `selection_tpu`, which counts for
15 and settles four. Loops of the kernel are counted as often as they run. A bundle takes one cycle
if nothing waits. A schedule does not wait for memory, so this is an estimate, not a measurement.
"""

import argparse
import json
import math
import os
import re
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from rlvr_jax.experiments.tpu_schedule import TOPOLOGIES
from rlvr_jax.kernels import selection_search, selection_tpu


def bundles_by_depth(code: str) -> list[int]:
    """Number of bundles of a `final_bundles.txt` outside of loops, in a loop, in a loop in it, …"""
    found = re.findall(r"^ *(?:0x[0-9a-f]+|0) +(?:[A-Z]{2})?: *(>*) *\{", code, re.MULTILINE)
    depths = [len(marks) for marks in found]
    return [depths.count(depth) for depth in range(max(depths) + 1)]


def _compile(chip, rows, tokens):
    """Makes the compiler write its files about both forms of a round."""
    topology = topologies.get_topology_desc(platform="tpu", topology_name=TOPOLOGIES[chip][0])
    mesh = Mesh(topology.devices[:1], ("data",))

    def array(shape, dtype):
        sharding = NamedSharding(mesh, PartitionSpec())
        return jax.ShapeDtypeStruct(shape, dtype, sharding=sharding)

    def count(chosen):
        return jnp.sum(chosen, dtype=jnp.int32)

    def plain(keys, eligible, k):
        return selection_search.kth_largest(keys, eligible, k, 32, count)

    def kernel(keys, eligible, k):
        return selection_tpu.kth_largest(keys, eligible, k, 32, count, add=lambda x: x)

    shape = rows, tokens
    arrays = array(shape, jnp.uint32), array(shape, bool), array((), jnp.int32)
    with jax.sharding.use_abstract_mesh(mesh.abstract_mesh):
        return [jax.jit(form).lower(*arrays).compile() for form in (plain, kernel)]


def main() -> None:
    """Compiles both forms for the chip and prints one JSON object about them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("chip", choices=TOPOLOGIES, help="kind of TPU")
    parser.add_argument(
        "--rows", type=int, default=512, help="number of responses of the batch (512)"
    )
    parser.add_argument(
        "--tokens", type=int, default=2048, help="number of tokens of a response (2048)"
    )
    args = parser.parse_args()
    jax.config.update("jax_platforms", "cpu")  # no TPU is looked for
    with tempfile.TemporaryDirectory() as folder:
        # Read by libtpu when it is loaded, which happens below.
        os.environ["LIBTPU_INIT_ARGS"] = f"--xla_jf_dump_to={folder} --xla_jf_dump_llo_text=true"
        os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")
        os.environ.setdefault("ALLOW_MULTIPLE_LIBTPU_LOAD", "true")
        forms = _compile(args.chip, args.rows, args.tokens)
        codes = [_largest(Path(folder), name) for name in ("reduce_fusion", "counts")]
    (steps_down, steps_across), (block_rows, _) = selection_tpu.tiling((args.rows, args.tokens))
    times = 1, steps_down * steps_across, block_rows // selection_tpu.ROWS
    depths = [bundles_by_depth(code) for code in codes]
    if len(depths[0]) > 1:
        parser.error(f"a fusion must have no loop, got one at {args.rows} x {args.tokens} tokens")
    kernel = sum(n * math.prod(times[: i + 1]) for i, n in enumerate(depths[1]))
    row = {
        "chip": args.chip,
        "shape": [args.rows, args.tokens],
        "xla": _row(32, depths[0][0], forms[0]),
        "pallas_tpu": _row(32 // selection_tpu.BITS, kernel, forms[1]),
    }
    print(json.dumps(row))


def _largest(folder, name):
    """The code of the largest fusion or kernel of that name."""
    paths = folder.glob(f"*{name}*final_bundles.txt")
    paths = [path for path in paths if "analysis" not in path.name]
    return max(paths, key=lambda path: path.stat().st_size).read_text()


def _row(rounds, bundles, program):
    """`cycles_of_fusions` is XLA's own estimate for a round; it knows nothing of kernels."""
    loop = program.as_text().split("ENTRY ")[0]
    cycles = sum(map(int, re.findall(r'"estimated_cycles":"?(\d+)', loop)))
    return {
        "rounds": rounds,
        "bundles_of_round": bundles,
        "bundles": rounds * bundles,
        "cycles_of_fusions": cycles,
    }


if __name__ == "__main__":
    main()
