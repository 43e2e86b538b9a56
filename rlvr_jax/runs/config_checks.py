"""Checks of the settings of a run that need neither model nor task."""

import math
from pathlib import Path
from typing import Any

from rlvr_jax.arguments import as_typed, checked
from rlvr_jax.console import check_trackers
from rlvr_jax.parallel import row_shards
from rlvr_jax.runs.config import TrainConfig, flag, setting_of


def check_config(config: TrainConfig) -> None:
    """Refuses settings that cannot work, before anything is loaded.

    Raises:
      ValueError: names the setting, the value and the requirement.
    """
    for name, value in config.flat.items():
        check_setting(name, value)
    if config.data.chat_template_kwargs and not config.data.chat_template:
        raise ValueError(
            "--chat-template-kwargs must be left out with --no-chat-template, got"
            f" {' '.join(config.data.chat_template_kwargs)}"
        )
    if config.data.drop_long_prompts and not config.data.prompt_tokens:
        raise ValueError("--drop-long-prompts must come with --prompt-tokens, got 0")
    rate = config.optimizer.learning_rate
    if rate is not None and not 0 <= rate < math.inf:
        wanted = "finite" if rate > 0 else "at least 0"
        raise ValueError(f"--learning-rate must be {wanted}, got {rate}")
    if config.seed >= 2**32:
        # JAX would use the seed modulo 2^32.
        raise ValueError(f"--seed must be below 2**32, got {config.seed}")
    prompts, update = config.sampling.prompts_per_step, config.update
    if prompts % update.minibatches:
        raise ValueError(
            f"--minibatches must divide --prompts-per-step {prompts} (an update takes"
            f" whole groups), got {update.minibatches}"
        )
    rows = config.plan.rows
    if update.micro_batches and rows % update.micro_batches:
        raise ValueError(
            f"--micro-batches must divide the {rows} rollouts of an update,"
            f" got {update.micro_batches}"
        )
    if config.engines.engine_adapters and not (config.engines.engine and config.policy.lora_rank):
        raise ValueError(
            "--engine-adapters must come with --engine and --lora-rank, got"
            f" {config.engines.engine!r} and {config.policy.lora_rank}"
        )
    _check_bitwise(config)
    check_trackers(config.log_to)
    _check_meshes(config, rows)


def _check_bitwise(config: TrainConfig) -> None:
    """Checks that the sampler and its distribution are those of the update."""
    policy, devices = config.policy, config.devices
    others = {
        "--compute-dtype float32": policy.compute_dtype != "float32" and policy.compute_dtype,
        "--mesh left out": devices.mesh,
        "--engine left out": config.engines.engine,
        **{f"{flag(name)} left out": config.flat[name] for name in config.sampler().cuts},
    }
    for wanted, seen in others.items():
        if policy.bitwise and seen:
            raise ValueError(f"--bitwise must come with {wanted}, got {seen}")


def check_setting(name: str, value: Any) -> Any:
    """Returns the value of a setting in its type: a list as a tuple, a text as a path.

    Raises:
      ValueError: an unknown setting, or a value of another type or out of range.
    """
    hint, option = setting_of(name).type, flag(name)
    with as_typed(option, f"{option}: value"):
        return Path(value) if hint is Path else checked(option, "value", value, hint)


def _check_meshes(config: TrainConfig, rows: int) -> None:
    """Checks that both meshes can be parsed and divide their numbers of rows."""
    if config.devices.sample_mesh and not config.devices.mesh:
        raise ValueError(
            f"--sample-mesh must come with --mesh, got only {config.devices.sample_mesh!r}"
        )
    sampled = config.sampling.prompts_per_step * config.sampling.samples_per_prompt
    split = {"mesh": rows // max(1, config.update.micro_batches), "sample_mesh": sampled}
    for name, count in split.items():
        with as_typed(flag(name), "mesh"):
            parts = row_shards(getattr(config.devices, name))
        if count % parts:
            what = "a step" if count == sampled else "a micro-batch"
            raise ValueError(
                f"{flag(name)} must divide the {count} rollouts of {what} by data x fsdp,"
                f" got {config.flat[name]!r}"
            )
