"""Weights that lie on two processes: each reads its part, the first one writes."""

import os
import socket
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.policy import Model, named_config, save

pytestmark = pytest.mark.slow

PROGRAM = """
import functools, sys
import jax
from rlvr_jax import policy
from rlvr_jax.parallel import make_mesh, parameter_shardings

address, process, source, target = sys.argv[1:]
jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(address, 2, int(process))
sharding = functools.partial(parameter_shardings, mesh=make_mesh("fsdp=2"))
model, params = policy.load(source, sharding)
gate = params["layers"]["gate"]
assert not gate.is_fully_addressable
assert [shard.data.shape for shard in gate.addressable_shards] == [(2, 16, 64)]
policy.save(target, model, params)
"""


def test_a_policy_on_two_processes_is_loaded_and_saved_bit_by_bit(tmp_path):
    model = Model(named_config("tiny", vocab_size=16))
    random = np.random.default_rng(0)
    shapes = jax.eval_shape(model.init, jax.random.key(0))
    params = jax.tree.map(lambda x: jnp.asarray(random.normal(size=x.shape), x.dtype), shapes)
    save(tmp_path / "one", model, params)
    with socket.socket() as free:
        free.bind(("localhost", 0))
        address = f"localhost:{free.getsockname()[1]}"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, address, str(i), tmp_path / "one", tmp_path / "two"],
            env={**os.environ, "XLA_FLAGS": "", "JAX_PLATFORMS": "cpu"},
        )
        for i in range(2)
    ]
    assert [process.wait() for process in processes] == [0, 0]
    first, second = ((tmp_path / run / "model.safetensors").read_bytes() for run in ("one", "two"))
    assert first == second
