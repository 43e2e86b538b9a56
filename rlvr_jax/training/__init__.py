"""Training: the update step, the loop, run directories, checkpoints. Only experiments import it.

`train(config)` runs one `TrainConfig` to its end, `train_together` several side by side;
`parse_config` reads one from a command line; `guarded` wraps a command. `objective_gradient` is the
three-step gradient of any objective.
"""

from rlvr_jax.training.command import (
    check_directory,
    describe_end,
    guarded,
    parse_config,
    train,
)
from rlvr_jax.training.config import TrainConfig, check_config
from rlvr_jax.training.hyperparameters import resolve_hyperparameters
from rlvr_jax.training.presets import preset
from rlvr_jax.training.together import default_jobs, train_together
from rlvr_jax.training.update import TrainState, objective_gradient, update

__all__ = [
    "TrainConfig",
    "TrainState",
    "check_config",
    "check_directory",
    "default_jobs",
    "describe_end",
    "guarded",
    "objective_gradient",
    "parse_config",
    "preset",
    "resolve_hyperparameters",
    "train",
    "train_together",
    "update",
]
