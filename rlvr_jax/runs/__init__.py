"""Runs: settings, command line, loop, run directories, checkpoints.

    config = TrainConfig.of(task="brackets", method="clip_cov", steps=9)
    train(config)    # writes the run directory and returns its summary

`parse_config` reads a command line, `resolved.resolve` checks settings, `guarded` wraps a command.
"""

from rlvr_jax.console import described
from rlvr_jax.runs.command import RunsFailed, check_directory, describe_end, train
from rlvr_jax.runs.command_line import parse_config
from rlvr_jax.runs.config import TrainConfig
from rlvr_jax.runs.config_checks import check_config
from rlvr_jax.runs.guard import guarded
from rlvr_jax.runs.presets import preset

__all__ = [
    "RunsFailed",
    "TrainConfig",
    "check_config",
    "check_directory",
    "describe_end",
    "described",
    "guarded",
    "parse_config",
    "preset",
    "train",
]
