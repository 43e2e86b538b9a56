"""A run's recipe: the objective of one method, the experience of it or of another, own stages."""

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlvr_jax import methods
from rlvr_jax.experience import (
    Experience,
    RunInfo,
    Stage,
    experience,
    mask_truncated,
    refill,
    stages as stage_room,
)
from rlvr_jax.experience.stages.rewards.tournament import Compare, compare_by
from rlvr_jax.experience.task_fit import check_prompts_suffice
from rlvr_jax.judges import read_rubric
from rlvr_jax.methods.arguments import read_arguments
from rlvr_jax.own import own_function
from rlvr_jax.runs.config import TrainConfig
from rlvr_jax.runs.hyperparameters import method_arguments
from rlvr_jax.runs.judging import check_criteria, judging
from rlvr_jax.tasks import Task
from rlvr_jax.types import Recipe, replace


def compose(
    config: TrainConfig, task: Task, recipe: Recipe, hyperparameters: Mapping[str, Any]
) -> Recipe:
    """The recipe of a run: with the experience that its settings ask for.

    Args:
      config: its response_tokens is the budget of a response, not 0.
      recipe, hyperparameters: of the method.
    Raises:
      ValueError: stages that cannot be made; an experience that needs what the task's prompts lack;
        dynamic sampling beside another refill.
    """
    first, compare = judging(config)
    compare = compare or _by_number(config, first)
    if config.experience or compare is not None or config.judging.judge_rubric:
        whose = config.experience or config.method
        own = method_arguments(config, {}, whose) if config.experience else dict(hyperparameters)
        check_criteria(config.judging.judge_rubric, whose, own)
        if config.judging.judge_rubric and own.get("criteria") == ():
            rubric = read_rubric(Path(config.judging.judge_rubric))
            own["criteria"] = tuple(criterion.text or criterion.name for criterion in rubric)
        recipe = replace(recipe, experience=_compared(whose, own, compare).experience)
    chain = recipe.experience or experience()
    if config.sampling.dynamic_sampling:
        if any(name.startswith("refill") for name in chain.stages):
            raise ValueError(
                f"--dynamic-sampling must be 0 for method"
                f" {config.experience or config.method!r}, which refills batches by itself, got"
                f" {config.sampling.dynamic_sampling}"
            )
        first += [refill(stage_room.uniform, config.sampling.dynamic_sampling)]
    last = [own_stage(name) for name in config.stage]
    if config.sampling.mask_truncated:
        last.append(mask_truncated())
    curricula = list(chain.curricula.values())
    stages = [*first, *chain.stages.values(), *last]
    chain = experience(curricula, chain.draw[1], stages)
    check_prompts_suffice(task, chain)
    return replace(recipe, experience=chain)


def _by_number(config: TrainConfig, asked: Sequence[Stage]) -> Compare | None:
    """What compares two answers by the number that a run's judge gives each of them; None where
    nobody judges, where the method compares none, or where its hyperparameters say who does.
    """
    method = config.experience or config.method
    sets_compare = not config.experience and any(
        p.startswith("compare=") for p in config.hyperparameters
    )
    if not asked or sets_compare or not _compares(method):
        return None
    if len(asked[0].rewards) > 1:
        raise ValueError(
            f"--judge-rubric must have one criterion for method {method!r}, which"
            f" compares answers by one number, got {len(asked[0].rewards)}; --judge-prompt pairs"
            " has the judge compare them"
        )
    return compare_by(0)


def _compares(method: str) -> bool:
    """Whether a method has answers compared with each other."""
    return "compare" in inspect.signature(methods.method(method).recipe).parameters


def _compared(method: str, hyperparameters: dict[str, Any], compare: Compare | None) -> Recipe:
    """The recipe of a method, whose answers a run's judge compares, if one does."""
    if compare is not None:
        if not _compares(method):
            raise ValueError(
                "--judge-prompt must show one answer for method"
                f" {method!r}, which compares none with another, got one that shows two"
            )
        hyperparameters = {**hyperparameters, "compare": compare}
    return methods.recipe(method, **hyperparameters)


def writers_of(record: str) -> list[str]:
    """Parts that write a record, each with the methods that have it."""
    found: dict[str, list[str]] = {}
    for name in methods.names():
        try:
            chain = methods.recipe(name).experience
        except (TypeError, ValueError):  # arguments without defaults
            continue
        for one in chain.parts.values() if chain is not None else ():
            if record in one.writes:
                found.setdefault(one.name, []).append(name)
    return [f"{part} (of {', '.join(users)})" for part, users in found.items()]


def setting_of(
    config: TrainConfig, task: Task, chain: Experience, vocabulary: int, width: int
) -> RunInfo:
    """What the parts of an experience may know of a run."""
    return RunInfo(
        task,
        config.sampling.prompts_per_step,
        config.sampling.samples_per_prompt,
        chain.initial_samples(config.sampling.samples_per_prompt),
        config.sampling.response_tokens,
        config.seed,
        config.steps,
        chain.rounds,
        vocabulary,
        width,
    )


def own_stage(name: str) -> Stage:
    """The stage of module:function, called with the arguments behind a second colon."""
    module, _, rest = name.partition(":")
    function, _, given = rest.partition(":")
    found = own_function("--stage", f"{module}:{function}", name)
    pairs = tuple(filter(None, given.split(",")))
    arguments = read_arguments(f"--stage {module}:{function}", found, pairs)
    missing = [
        parameter.name
        for parameter in inspect.signature(found).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        and parameter.name not in arguments
    ]
    if missing:
        raise ValueError(f"--stage {name} must be given {', '.join(missing)}, got none")
    stage = found(**arguments)
    if not isinstance(stage, Stage):
        raise ValueError(f"--stage {name} must return a Stage, got {type(stage).__name__}")
    return stage
