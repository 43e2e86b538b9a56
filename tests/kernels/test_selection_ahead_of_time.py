"""The TPU sweeps of selection, compiled for chips that are not there; skipped without libtpu."""

import functools
import json
import os
import re
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from experiments.selection_schedule import bundles_by_depth
from experiments.tpu_schedule import TOPOLOGIES
from rlvr_jax.kernels import selection

SHAPE = (512, 2048)


def compiled(topology, num_devices, implementation, shape):
    """`top_covariance`, the operation with all three sweeps, with rows split over the devices."""
    os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")
    os.environ.setdefault("ALLOW_MULTIPLE_LIBTPU_LOAD", "true")
    described = topologies.get_topology_desc(platform="tpu", topology_name=topology)
    mesh = Mesh(np.array(described.devices[:num_devices]), ("data",))

    def array(shape, dtype, *spec):
        sharding = NamedSharding(mesh, PartitionSpec(*spec))
        return jax.ShapeDtypeStruct(shape, dtype, sharding=sharding)

    values = array(shape, jnp.float32, "data")
    mask, rollout_id = array(shape, bool, "data"), array(shape[:1], jnp.int32, "data")
    arrays = values, values, mask, array((), jnp.int32), rollout_id
    function = functools.partial(selection.top_covariance, mesh=mesh, implementation=implementation)
    with jax.sharding.use_abstract_mesh(mesh.abstract_mesh):  # names the chip on one device, too
        return jax.jit(function).lower(*arrays).compile()


@pytest.mark.slow
@pytest.mark.parametrize("chip", TOPOLOGIES)
def test_the_sweeps_compile(chip):
    pytest.importorskip("libtpu")
    text = compiled(TOPOLOGIES[chip][0], 1, "pallas_tpu", SHAPE).as_text()
    for name in ("limb_sums", "centered_product", "counts"):
        assert re.search(rf"%{name}[\w.]* = .*custom-call", text)


def test_the_sweeps_compile_for_shapes_that_are_no_whole_tiles():
    pytest.importorskip("libtpu")
    assert "tpu_custom_call" in compiled("v5e:2x2", 1, "pallas_tpu", (12, 100)).as_text()


@pytest.mark.slow
@pytest.mark.parametrize("implementation", selection.IMPLEMENTATIONS)
def test_on_a_mesh_only_counts_and_limbs_are_sent(implementation):
    pytest.importorskip("libtpu")
    text = compiled("v5e:2x2", 4, implementation, SHAPE).as_text()
    assert "all-gather" not in text
    sent = re.findall(r"= (.+?) all-reduce(?:-start)?\(", text)
    assert sent
    for shape in sent:
        for dimensions in re.findall(r"\[([\d,]*)\]", shape):
            assert np.prod([int(n) for n in dimensions.split(",") if n]) <= 16


@pytest.mark.slow
def test_the_schedule_is_read_for_both_forms():
    pytest.importorskip("libtpu")
    command = [sys.executable, "-m", "experiments.selection_schedule", "v5e"]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    print(ended.stdout)
    row = json.loads(ended.stdout)
    registers = SHAPE[0] * SHAPE[1] // (8 * 128)  # each is read at least once
    assert row["xla"]["bundles_of_round"] >= registers / 3  # three loads a bundle
    assert row["pallas_tpu"]["bundles_of_round"] >= 15 * registers / 4  # four vector units


def test_bundles_are_counted_by_the_loops_they_stand_in():
    code = """
     0   :  { %v1 = vmov 0 }
   0x1   :  { %v3 = vstv %s1 }
   0x2 LB: > { %153 = sbr.rel (%p1) target = $region28 }
   0x3   : >> { %v2 = vld [vmem:[%s1] sm:$0xff] }
   0x4 LE: >> { %v4 = vadd.s32 %v2, %v3 }
   0x5 PF: > { %s16 = sadd.s32 1, %s1 }
   0x6   :  { %v5 = vld [vmem:[#allocation0] sm:$0x1] }
"""
    assert bundles_by_depth(code) == [3, 2, 2]
