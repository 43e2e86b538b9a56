"""Settings of a run that cannot work, independent of model and task."""

import dataclasses
import math
from pathlib import Path
from typing import Any

from rlvr_jax.parallel import row_shards
from rlvr_jax.policy import REMAT_POLICIES
from rlvr_jax.runs.config import TrainConfig
from rlvr_jax.runs.hyperparameters import parse_hyperparameters
from rlvr_jax.runs.trackers import check_trackers
from rlvr_jax.types.parts import checked

_DTYPES = ("float32", "bfloat16")


def check_config(config: TrainConfig) -> None:
    """Refuses settings that cannot work, before anything is loaded.

    Raises:
      ValueError: names the setting, the value and the requirement.
    """
    for name, value in vars(config).items():
        check_setting(name, value)
    if config.template_arguments() and not config.chat_template:
        raise ValueError(
            "TrainConfig: chat_template_kwargs must be empty without a chat template, got"
            f" {' '.join(config.chat_template_kwargs)}"
        )
    if config.drop_long_prompts and not config.prompt_tokens:
        raise ValueError("TrainConfig: drop_long_prompts needs prompt_tokens, got 0")
    rate = config.learning_rate
    if rate is not None and (not rate > 0 or math.isinf(rate)):
        wanted = "finite" if rate > 0 else "positive"
        raise ValueError(f"TrainConfig: learning_rate must be {wanted}, got {rate}")
    if config.seed >= 2**32:
        # JAX would take the rest of a division by 2^32.
        raise ValueError(f"TrainConfig: seed must be below 2**32, got {config.seed}")
    config.sampling()
    if config.prompts_per_step % config.minibatches:
        raise ValueError(
            "TrainConfig: minibatches must divide prompts_per_step ="
            f" {config.prompts_per_step} (an update takes whole groups), got {config.minibatches}"
        )
    rows = config.plan().rows
    if config.micro_batches and rows % config.micro_batches:
        raise ValueError(
            f"TrainConfig: micro_batches must divide the {rows} rollouts of an update,"
            f" got {config.micro_batches}"
        )
    of_few = {
        "compute_dtype": _DTYPES,
        "remat": REMAT_POLICIES,
        "failed_grades": ("raise", "no_verdict"),
    }
    for name, choices in of_few.items():
        if getattr(config, name) not in choices:
            raise ValueError(
                f"TrainConfig: {name} must be {', '.join(choices[:-1])} or {choices[-1]},"
                f" got {getattr(config, name)!r}"
            )
    config.lora()
    check_trackers(config.log_to)
    _check_meshes(config, rows)
    config.wave()
    config.seats()
    parse_hyperparameters(config.method, config.hyperparameters)


def check_setting(name: str, value: Any, where: str = "TrainConfig") -> Any:
    """The value of one setting as its type: a list as a tuple, a text as a path.

    Args:
      where: begins the sentence of an error.
    Raises:
      ValueError: a value of another type or out of range.
    """
    (hint,) = [field.type for field in dataclasses.fields(TrainConfig) if field.name == name]
    return Path(value) if hint is Path else checked(where, name, value, hint)


def _check_meshes(config: TrainConfig, rows: int) -> None:
    """Both meshes can be read, have the same devices and divide the rows that they get."""
    if config.sample_mesh and not config.mesh:
        raise ValueError(
            f"TrainConfig: sample_mesh needs a mesh to train on, got {config.sample_mesh!r} alone"
        )
    sampled = config.prompts_per_step * config.samples_per_prompt
    split = {"mesh": rows // max(1, config.micro_batches), "sample_mesh": sampled}
    for name, count in split.items():
        try:
            parts = row_shards(getattr(config, name))
        except ValueError as error:
            raise ValueError(f"TrainConfig: {name}: {error}") from None
        if count % parts:
            what = "a step" if count == sampled else "a micro-batch"
            raise ValueError(
                f"TrainConfig: {name} must divide the {count} rollouts of {what} by data x fsdp,"
                f" got {getattr(config, name)!r}"
            )
