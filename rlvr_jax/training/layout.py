"""Where the arrays of a run lie: meshes, shardings of the state, and the sampler's own layout."""

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
from rlvr_jax.training.config import TrainConfig
from rlvr_jax.training.update import TrainState

__all__ = ["make_meshes", "make_reshard", "placed_like", "state_shardings", "tell_layout"]

_MIB = 2**20


def make_meshes(config: TrainConfig) -> tuple[Mesh, Mesh]:
    """The meshes to train and to sample on: the same devices.

    Raises:
      ValueError: a mesh that the devices do not fill, or none where several processes run.
    """
    mesh = make_mesh(config.mesh) if config.mesh else one_device_mesh()
    return mesh, regrouped(mesh, config.sample_mesh) if config.sample_mesh else mesh


def policy_shardings(model: Model) -> Any:
    """Shardings of what scores and samples: all weights, and adapters if the model has them."""
    shardings = parameter_shardings(model.config, model.mesh)
    if model.config.lora:
        shardings = lora.attach(shardings, adapter_shardings(model.config, model.mesh))
    return shardings


def placed_like(model: Model) -> Callable[[Params], Params]:
    """A function under jit that puts an adapter, or all weights, where training has them."""
    adapters = model.config.lora is not None
    shardings = (adapter_shardings if adapters else parameter_shardings)(model.config, model.mesh)
    return jax.jit(lambda params: params, out_shardings=shardings)


def state_shardings(
    model: Model, optimizer: optax.GradientTransformation, params: Params
) -> TrainState:
    """Shardings of a state: what the optimizer keeps lies with the parameter it is kept for.

    Args:
      params: what is trained, on its devices.
    """
    whole = replicated(model.mesh)
    shardings = jax.tree.map(lambda x: x.sharding, params)
    kept = optax.tree.map_params(
        optimizer,
        lambda _, sharding: sharding,
        jax.eval_shape(optimizer.init, params),
        shardings,
        transform_non_params=lambda _: whole,
    )
    return TrainState(shardings, kept, whole, whole)
