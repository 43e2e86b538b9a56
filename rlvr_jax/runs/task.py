"""The task of a run: made as the command line says, less the prompts that are too long."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace

from rlvr_jax import policy, sandbox, tasks
from rlvr_jax.experience.prompts import prompt_lengths
from rlvr_jax.runs.config import TrainConfig
from rlvr_jax.tasks import Task

__all__ = ["Load", "load_task"]

Load = Callable[..., Task]
"""(name, options, columns) -> task, such as `tasks.load_as_written`."""


def load_task(config: TrainConfig, load: Load = tasks.load_as_written) -> Task:
    """The task that a run is about.

    With `drop_long_prompts` those of more than `prompt_tokens` tokens are left out of both splits,
    and a warning counts them.

    Raises:
      ValueError: as `tasks.load_as_written`; no policy whose tokens could be counted.
    """
    if config.unsafe_local:
        sandbox.allow_unsafe_local()
    task = load(config.task, config.task_options, config.columns)
    path = config.model or task.base_model
    if not config.drop_long_prompts or not path:
        return task
    tokenizer, kept, said = policy.tokenizer(path), {}, []
    for split in ("train", "test"):
        prompts = getattr(task, split)
        lengths = prompt_lengths(tokenizer, prompts)
        own = zip(prompts, lengths, strict=True)
        kept[split] = tuple(prompt for prompt, length in own if length <= config.prompt_tokens)
        said.append(f"{len(prompts) - len(kept[split])} of {len(prompts)} {split} prompts")
    if len(kept["train"]) + len(kept["test"]) < len(task.train) + len(task.test):
        warnings.warn(
            f"{config.task}: {' and '.join(said)} have more than prompt_tokens ="
            f" {config.prompt_tokens} tokens and were left out",
            stacklevel=2,
        )
    return replace(task, **kept)
