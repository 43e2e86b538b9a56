"""Where the arrays of a run lie: its meshes, and the shardings of what is trained."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import optax
from jax.sharding import Mesh

from rlvr_jax.parallel import (
    adapter_shardings,
    bytes_per_device,
    make_mesh,
    one_device_mesh,
    parameter_shardings,
    regrouped,
    replicated,
)
from rlvr_jax.policy import Model, Params, lora
from rlvr_jax.policy.parameters import parameter_shapes
from rlvr_jax.training.config import TrainConfig
from rlvr_jax.training.update import TrainState

__all__ = ["describe_layout", "make_meshes", "make_reshard", "state_shardings", "trained_shapes"]


def make_meshes(config: TrainConfig) -> tuple[Mesh, Mesh]:
    """The meshes to train and to sample on, of the same devices.

    Raises:
      ValueError: a mesh that the devices do not fill, or none where several processes run.
    """
    mesh = make_mesh(config.mesh) if config.mesh else one_device_mesh()
    return mesh, regrouped(mesh, config.sample_mesh) if config.sample_mesh else mesh


def trained_shapes(model: Model) -> Params:
    """Shapes, dtypes and shardings of what is trained: adapters if the model has them, else all."""
    if model.config.lora:
        shapes = jax.eval_shape(partial(lora.init, model), jax.random.key(0))
        shardings = adapter_shardings(model.config, model.mesh)
    else:
        shapes = parameter_shapes(model.config)
        shardings = parameter_shardings(model.config, model.mesh)
    return jax.tree.map(
        lambda x, sharding: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding),
        shapes,
        shardings,
    )


def state_shardings(model: Model, optimizer: optax.GradientTransformation) -> TrainState:
    """Shardings of a state: what the optimizer keeps lies with the parameter it is kept for."""
    whole = replicated(model.mesh)
    shapes = trained_shapes(model)
    shardings = jax.tree.map(lambda x: x.sharding, shapes)
    kept = optax.tree.map_params(
        optimizer,
        lambda _, sharding: sharding,
        jax.eval_shape(optimizer.init, shapes),
        shardings,
        transform_non_params=lambda _: whole,
    )
    return TrainState(shardings, kept, whole, whole)


def make_reshard(model: Model, sampler: Model) -> Callable[[Params], Params]:
    """A function that puts a policy's parameters where the sampler wants them.

    Args:
      model, sampler: the same model on the mesh to train and the mesh to sample on.
    """
    if sampler.mesh == model.mesh:
        return lambda params: params
    shardings: Any = parameter_shardings(sampler.config, sampler.mesh)
    if sampler.config.lora:
        shardings = lora.attach(shardings, adapter_shardings(sampler.config, sampler.mesh))
    return jax.jit(lambda params: params, out_shardings=shardings)


def describe_layout(
    config: TrainConfig, params: Params, state: TrainState, reshard: Callable[[Params], Params]
) -> str:
    """A sentence with the memory that weights and optimizer take, and what resharding costs.

    Args:
      params: all weights of the policy.
    """
    said = f"mesh {config.mesh}: on each device {_mebibytes(params)} of weights and"
    said += f" {_mebibytes(state.optimizer_state)} of optimizer state"
    if config.sample_mesh:
        jax.block_until_ready(reshard(params))  # compiled
        started = time.perf_counter()
        resharded = jax.block_until_ready(reshard(params))
        seconds = time.perf_counter() - started
        said += f"; sample mesh {config.sample_mesh}: {_mebibytes(resharded)} of weights more while"
        said += f" sampling, resharded in {seconds:.3g} s"
    return said


def _mebibytes(tree: Any) -> str:
    return f"{bytes_per_device(tree) / 2**20:.1f} MiB"
