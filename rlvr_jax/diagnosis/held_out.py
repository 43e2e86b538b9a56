"""Loads a policy with the held-out prompts of a task, as in an evaluation."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rlvr_jax.experience import RunActor
from rlvr_jax.experience.evaluation import evaluation_sampler, held_out_indices
from rlvr_jax.experience.sampling import Sampler
from rlvr_jax.policy import Params
from rlvr_jax.runs.config import TrainConfig
from rlvr_jax.runs.config_checks import check_config
from rlvr_jax.runs.loading import LoadedPolicy, load_policy
from rlvr_jax.runs.presets import preset
from rlvr_jax.runs.resolved import with_task
from rlvr_jax.runs.task import load_task
from rlvr_jax.tasks import Task
from rlvr_jax.training.layout import make_reshard


@dataclass(frozen=True)
class HeldOut:
    """A policy with held-out prompts.

    Fields:
      loaded: the loaded folder.
      sampler: a sampler for many rows. params: its weights.
      indices: positions of the prompts in the test split; the same ones for every seed.
    """

    loaded: LoadedPolicy
    sampler: Sampler
    params: Params
    indices: np.ndarray

    def actor(self) -> RunActor:
        """The policy as an actor that samples and grades, and does not score."""
        return RunActor(self.sampler, self.params, {"plain": self.loaded.test_table}, 0, None)


def evaluation_settings(task: str, response_tokens: int = 0, **changes: Any) -> TrainConfig:
    """Returns settings for evaluations: those of the task, with `changes`.

    Examples:
      >>> from rlvr_jax.diagnosis.held_out import evaluation_settings
      >>> settings = evaluation_settings("brackets", evaluation_prompts=4)
      >>> settings.evaluation.evaluation_prompts, settings.sampling.prompts_per_step
      (4, 64)

    Args:
      response_tokens: 0: those of a training run.
    Raises:
      ValueError: a setting that cannot work.
    """
    start = preset(task, "grpo")
    settings = start.replace(
        response_tokens=response_tokens or start.sampling.response_tokens,
        # The mesh splits the rollouts of a step.
        minibatches=1,
        micro_batches=0,
        **changes,
    )
    check_config(settings)
    return settings


def load_held_out(settings: TrainConfig, task: Task | None = None) -> HeldOut:
    """Loads the folder that the settings name, with its held-out prompts.

    Examples:
      >>> from rlvr_jax import tasks
      >>> from rlvr_jax.diagnosis.held_out import evaluation_settings, load_held_out
      >>> model = str(tasks.load("brackets").base_model)
      >>> settings = evaluation_settings("brackets", model=model, evaluation_prompts=4)
      >>> load_held_out(settings).indices.shape
      (4,)

    Args:
      task: one that was loaded already; None: that of the settings.
    Raises:
      ValueError: as `load_task` and `load_policy`.
    """
    task = load_task(settings) if task is None else task
    settings = with_task(settings, task)
    loaded = load_policy(settings, task, settings.policy.model)
    indices = held_out_indices(task, settings.evaluation.evaluation_prompts)
    sampler = evaluation_sampler(
        loaded.sampler,
        len(indices),
        settings.evaluation.evaluation_samples,
        mesh_given=bool(settings.devices.mesh),
    )
    return HeldOut(
        loaded, sampler, make_reshard(loaded.model, sampler.model)(loaded.params), indices
    )
