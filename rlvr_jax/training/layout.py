"""Placement of a run's arrays: its meshes, and the shardings of the trained parameters."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from rlvr_jax.parallel import (
    adapter_shardings,
    bytes_per_device,
    make_mesh,
    one_device_mesh,
    parameter_shardings,
    placed_shapes,
    regrouped,
    replicated,
    row_shards,
)
from rlvr_jax.parallel.roofline import num_parameters
from rlvr_jax.policy import Model, Params, lora, products
from rlvr_jax.policy.parameters import parameter_shapes, rounded
from rlvr_jax.training.function_cache import cached_results
from rlvr_jax.training.update import TrainState

SMALL = 8_000_000
"""Parameters of a model whose weights every core of a CPU may read for itself."""


def make_meshes(mesh: str, sample_mesh: str) -> tuple[Mesh, Mesh]:
    """The meshes to train and to sample on, of the same devices.

    Args:
      mesh: devices as axis=size; empty: one device.
      sample_mesh: the same devices for the sampler; empty: as `mesh`.
    Raises:
      ValueError: a mesh that the devices do not fill, or none where several processes run.
    """
    made = make_mesh(mesh) if mesh else one_device_mesh()
    return made, regrouped(made, sample_mesh) if sample_mesh else made


def sampling_mesh(sampler: Model, prompts: int) -> Mesh:
    """Returns the default mesh to sample on: one CPU device per core; else the sampler's mesh.

    A CPU samples from a small model faster with one device per core, each with a part of the
    prompts. Threads that split the small products of one row mostly wait for each other.

    Args:
      prompts: prompts of a call of the sampler; the number of devices divides them.
    """
    if not (_on_cpu_alone(sampler) and num_parameters(sampler.config) <= SMALL):
        return sampler.mesh
    parts = next(n for n in range(jax.device_count(), 0, -1) if prompts % n == 0)
    return make_mesh(f"data={parts}", jax.devices()[:parts])


def evaluation_mesh(sampler: Model) -> Mesh:
    """Returns the default mesh to sample many rows on: one CPU device per core, if all can read the
    trained weights; else that of the sampler.

    Two cores sampled 24 to 27 responses of SmolLM2-135M per second as two devices with 64 rows
    each. As one device with 64 rows they sampled 17 to 18.
    """
    if not _on_cpu_alone(sampler) or sampler.config.compute_dtype != "float32":
        return sampler.mesh
    return make_mesh(f"data={jax.device_count()}")


def _on_cpu_alone(sampler: Model) -> bool:
    return jax.process_count() == 1 and sampler.mesh.devices.flat[0].platform == "cpu"


def trained_shapes(model: Model) -> Params:
    """Shapes, dtypes and shardings of trained parameters: adapters if there are any, else all."""
    if model.config.lora:
        shapes = jax.eval_shape(partial(lora.init, model), jax.random.key(0))
        shardings = adapter_shardings(model.config, model.mesh)
    else:
        shapes = parameter_shapes(model.config)
        shardings = parameter_shardings(model.config, model.mesh)
    return placed_shapes(shapes, shardings)


def state_shardings(model: Model, optimizer: optax.GradientTransformation) -> TrainState:
    """Shardings of a state, but for its critic."""
    whole = replicated(model.mesh)
    shapes = trained_shapes(model)
    shardings = jax.tree.map(lambda x: x.sharding, shapes)
    return TrainState(shardings, optimizer_shardings(optimizer, shapes), whole, whole)


def optimizer_shardings(optimizer: optax.GradientTransformation, params: Params) -> Any:
    """The optimizer's state of a parameter is sharded like it; the rest is on every device."""
    shardings = jax.tree.map(lambda x: x.sharding, params)
    whole = replicated(jax.tree.leaves(shardings)[0].mesh)
    return optax.tree.map_params(
        optimizer,
        lambda _, sharding: sharding,
        jax.eval_shape(optimizer.init, params),
        shardings,
        transform_non_params=lambda _: whole,
    )


@cached_results
def make_reshard(model: Model, sampler: Model) -> Callable[[Params], Params]:
    """Returns a function from a policy's parameters to those of the sampler.

    On a CPU its result is a view of the parameters. Delete it before an update, which cannot
    overwrite weights with a view. In bfloat16, or on another mesh, the result is a copy; else it is
    the parameters themselves.

    Args:
      model, sampler: the same model on the mesh to train and the mesh to sample on.
    """
    if views_weights(model, sampler):
        return partial(_views, sampler)
    if not copies_weights(model, sampler):
        return lambda params: params
    shardings = sampler_shardings(sampler)
    if set(sampler.mesh.devices.flat) == set(model.mesh.devices.flat):
        return jax.jit(partial(sampler_params, sampler), out_shardings=shardings)
    by_layer = jax.jit(partial(sampler_params, sampler))
    return lambda params: jax.device_put(by_layer(params), shardings)


def copies_weights(model: Model, sampler: Model) -> bool:
    """Whether the sampler reads a copy of the weights."""
    same = sampler.mesh == model.mesh and model.config.compute_dtype != "bfloat16"
    return not same and not views_weights(model, sampler)


def views_weights(model: Model, sampler: Model) -> bool:
    """Whether the sampler reads the weights layer by layer where they are trained: as they are, on
    CPU devices, which have one memory."""
    whole = sampler.mesh.shape["data"] == sampler.mesh.size
    on_host = model.mesh.size == 1 and model.mesh.devices.flat[0].platform == "cpu"
    return whole and on_host and model.config.compute_dtype == "float32"


def _views(model: Model, params: Params) -> Params:
    """Parameters on every device of the model's mesh, stacked and layer by layer, without a copy:
    a layer is contiguous in its stack, and an array of the host's memory is taken as it is.

    Many tokens at once take the stack: a loop over it is compiled faster than layer after layer.
    """
    host = jax.tree.map(np.asarray, params)
    host["unstacked"] = model.unstacked(host)["layers"]
    whole = replicated(model.mesh)
    seen = [jax.device_put(host, device) for device in model.mesh.devices.flat]

    def on_all(*parts):
        return jax.make_array_from_single_device_arrays(parts[0].shape, whole, parts)

    return jax.tree.map(on_all, *seen)


def sampler_params(model: Model, params: Params) -> Params:
    """Returns parameters for the loop of the sampler: layer by layer, in the compute dtype.

    Rounded weights halve the bytes that each token reads. In bfloat16 on a CPU, the unembedding is
    there a second time, transposed (`policy.products`): XLA would widen all of it for each token.
    """
    narrow = rounded(params, model.config.compute_dtype)
    if products.narrow_on_cpu(model.config.compute_dtype, model.mesh):
        narrow["transposed_unembedding"] = model.unembedding(narrow).T
    return model.unstacked(narrow)


def sampler_shardings(model: Model) -> Any:
    """Shardings of `sampler_params` on the model's mesh."""
    shardings: Any = parameter_shardings(model.config, model.mesh)
    if model.config.lora:
        shardings = lora.attach(shardings, adapter_shardings(model.config, model.mesh))

    def of_layer(sharding):
        return NamedSharding(model.mesh, PartitionSpec(*sharding.spec[1:]))

    layer = jax.tree.map(of_layer, shardings["layers"])
    if products.narrow_on_cpu(model.config.compute_dtype, model.mesh):
        rows, columns = model.unembedding(shardings).spec
        spec = PartitionSpec(columns, rows)
        shardings["transposed_unembedding"] = NamedSharding(model.mesh, spec)
    return {**shardings, "layers": (layer,) * model.config.num_layers}


def describe_layout(
    mesh: str,
    sample_mesh: str,
    params: Params,
    state: TrainState,
    reshard: Callable[[Params], Params],
    prompts: int,
) -> str:
    """A sentence with the memory that weights and optimizer take, what resharding costs, and
    whether the sampler's mesh cannot split the prompts.

    Args:
      mesh, sample_mesh: as for `make_meshes`.
      params: all weights of the policy.
      state: of training, on the mesh.
      reshard: moves weights to the mesh of the sampler.
      prompts: of one sampling batch.
    """
    text = f"mesh {mesh}: on each device {_mebibytes(params)} of weights and"
    text += f" {_mebibytes(state.optimizer_state)} of optimizer state"
    if sample_mesh:
        jax.block_until_ready(reshard(params))  # compiled
        started = time.perf_counter()
        resharded = jax.block_until_ready(reshard(params))
        seconds = time.perf_counter() - started
        text += f"; sample mesh {sample_mesh}: {_mebibytes(resharded)} of weights more while"
        text += f" sampling, resharded in {seconds:.3g} s"
    if prompts % (shards := row_shards(sample_mesh or mesh)):
        text += f"; the {prompts} prompts of a call of the sampler cannot be split over data × fsdp"
        text += f" = {shards} of the {'sample ' * bool(sample_mesh)}mesh: where they can, it"
        text += " computes less"
    return text


def _mebibytes(tree: Any) -> str:
    return f"{bytes_per_device(tree) / 2**20:.1f} MiB"
