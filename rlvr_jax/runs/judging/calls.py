"""The model of a judge: the policy itself, another folder, a server, or a custom function."""

import functools
from pathlib import Path
from typing import Any

import numpy as np

from rlvr_jax import policy
from rlvr_jax.arguments import as_typed
from rlvr_jax.experience import RunActor, Sampler
from rlvr_jax.experience.prompts import PromptTable, stop_tokens
from rlvr_jax.experience.stages.grading.judge import writing
from rlvr_jax.judges import Call, by_function, server
from rlvr_jax.own import own_function
from rlvr_jax.parallel import parameter_shardings
from rlvr_jax.rollout import Sampling, named_key
from rlvr_jax.runs.config import TrainConfig
from rlvr_jax.training.layout import make_meshes
from rlvr_jax.types import replace

_WORDS = 512
"""Largest number of tokens of a reply. A policy that judges itself uses the response budget."""

_OPTIONS = {
    "policy": ("temperature", "tokens"),
    "folder": ("temperature", "tokens"),
    "server": ("temperature", "tokens", "at_once", "seconds", "retries"),
    "module": ("at_once", "seconds"),
}
"""By kind of judge."""

_FOLDER_PROMPTS = 16
"""Texts that another folder answers at a time."""


def options_of_call(judge: str) -> tuple[str, ...]:
    """Returns those of `judge_options` that apply to calls of this judge."""
    return _OPTIONS.get(judge.partition(":")[0], _OPTIONS["module"])


def call_of(config: TrainConfig, options: dict[str, Any], sampling: dict[str, Any]) -> Call | None:
    """Returns the model of the judge; None for the policy itself.

    Args:
      options: `judge_options`, all of them.
    Raises:
      ValueError: a folder, a server or a function that does not exist.
    """
    kind, _, name = config.judging.judge.partition(":")
    if config.judging.judge == "policy":
        return None
    if kind == "server":
        own = {option: options[option] for option in _OPTIONS["server"]}
        with as_typed("--judge server:NAME", "server"):
            return server(name, **own | {"tokens": options["tokens"] or _WORDS})
    if kind == "folder":
        return _of_folder(name, options["tokens"] or _WORDS, config, sampling)
    function = own_function("--judge", config.judging.judge)
    return by_function(function, config.judging.judge, options["at_once"], options["seconds"])


def _of_folder(path: str, tokens: int, config: TrainConfig, sampling: dict[str, Any]) -> Call:
    """Another policy in this process, loaded at the first request."""
    if not Path(path).is_dir():
        raise ValueError(f"--judge: folder must be a policy folder, got {path!r}")
    key = named_key(config.seed, "judge", 0)

    @functools.cache
    def call():
        _, mesh = make_meshes(config.devices.mesh, config.devices.sample_mesh)
        model, params = policy.load(path, functools.partial(parameter_shardings, mesh=mesh))
        tokenizer = policy.tokenizer(path)
        sampler = Sampler(
            replace(model, mesh=mesh),
            tokenizer,
            None,
            _FOLDER_PROMPTS,
            1,
            (_FOLDER_PROMPTS, 1),
            min(tokens, model.config.max_positions // 2),
            Sampling(),
            stop_tokens=stop_tokens(tokenizer, model.stop_tokens),
        )
        nothing = PromptTable((), np.zeros((1, 1), np.int32), np.ones(1, np.int32), tokenizer)
        return writing(RunActor(sampler, params, {"plain": nothing}, 0, None), path, key, sampling)

    def query(questions, spending):
        return call().query(questions, spending)

    options = sorted(sampling.items())
    return Call(query, f"folder {path} {options} {tokens} {config.seed}", together=True)
