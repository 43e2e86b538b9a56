"""The state of a run between two steps: one object on the devices and one on the host.

Random keys are not a part of it: they are functions of the seed and the step.
"""

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from rlvr_jax.training.update import TrainState


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class HostState:
    """The part of a run's state in numpy, the same on every process.

    Fields:
      sampled_tokens: tokens that the run has generated so far, int64 [].
      data: of the experience's parts by name: curricula, stores, histories.
    """

    sampled_tokens: np.ndarray
    data: dict[str, Any]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class RunState:
    """The state of a run between two steps, as a checkpoint saves it.

    Fields:
      device: weights, optimizer, critic, state of the objective; an update uses it up.
      host: state of the experience and counts.
    """

    device: TrainState
    host: HostState
