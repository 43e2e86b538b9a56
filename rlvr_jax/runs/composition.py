"""The recipe of a run: objective of its method, experience of a method, custom stages."""

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
from rlvr_jax.runs.judging import check_criteria, judging, scoring_judge
from rlvr_jax.tasks import Task
from rlvr_jax.types import Recipe, replace


def compose(
    config: TrainConfig, task: Task, recipe: Recipe, hyperparameters: Mapping[str, Any]
) -> Recipe:
    """Returns the recipe of a run, with the experience that its settings request.

    Args:
      config: its response_tokens is the budget of a response, not 0.
      task: the loaded task.
      recipe, hyperparameters: of the method.
    Raises:
      ValueError: stages that cannot be made; prompts without the fields that the experience needs;
        dynamic sampling with another refill.
    """
    whose = config.experience or config.method
    rewriting = bool(config.judging.judge) and "judge" in _parameters(whose)
    first, compare = ([], None) if rewriting else judging(config)
    compare = compare or _by_number(config, first)
    if config.experience or compare is not None or config.judging.judge_rubric or rewriting:
        own = dict(hyperparameters)
        if config.experience:
            has_environment = task.environment is not None
            own = method_arguments(config, {}, whose, environment=has_environment)
        own |= _rewriter(config, whose) if rewriting else {}
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
    _check_engine(config, task, chain)
    return replace(recipe, experience=chain)


def _check_engine(config: TrainConfig, task: Task, chain: Experience) -> None:
    """Refuses an engine for an experience that needs the sampler in this process.

    Raises:
      ValueError: names the part, its need and the fix.
    """
    if not config.engines.engine:
        return
    draw = chain.draw[1]
    world = task.environment if draw.environment == "task" else draw.environment
    needs = {
        stage.label: "requests samples of the recipe's teacher, and an engine has only the policy"
        for stage in chain.stages.values()
        if stage.samples_teacher
    }
    for one in chain.parts.values():
        if {"soft", "soft_prompt"} & one.writes:
            needs[one.label] = "feeds the model vectors in place of tokens, which an engine cannot"
    if draw.sampling.get("processor") is not None:
        needs[draw.label] = "has a logits processor, which an engine does not"
    if world is not None and any(world.stops):
        needs[draw.label] = "pauses responses at stop texts, which an engine does not"
    for label, why in needs.items():
        raise ValueError(
            f"--engine must be left out for method {config.experience or config.method!r}, got"
            f" {config.engines.engine!r}: its part {label} {why}"
        )


def _by_number(config: TrainConfig, asked: Sequence[Stage]) -> Compare | None:
    """Compares two responses by the grade of each by the judge of the run; None without a judge,
    if the method compares none, or if its hyperparameters set the comparison.
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
            f" compares responses by one number, got {len(asked[0].rewards)}; with --judge-prompt"
            " pairs the judge compares them"
        )
    return compare_by(0)


def _rewriter(config: TrainConfig, method: str) -> dict[str, Any]:
    """The judge and the first rubric of a method that calls the judge and rewrites its rubric."""
    settings = config.judging
    if settings.judge_prompt:
        raise ValueError(
            f"--judge-prompt must be empty for method {method!r}, whose rubric makes the prompt,"
            f" got {settings.judge_prompt!r}; --judge-rubric sets the first rubric"
        )
    asked, sampling = scoring_judge(config, config.run_dir / "judge.jsonl")
    if not settings.judge_rubric:
        return {"judge": asked, "sampling": sampling}
    rubric = read_rubric(Path(settings.judge_rubric))
    items = tuple(f"{one.maximum:g}: {one.text or one.name}" for one in rubric)
    return {"judge": asked, "sampling": sampling, "rubric": items}


def _compares(method: str) -> bool:
    """Whether a method compares responses with each other."""
    return "compare" in _parameters(method)


def _parameters(method: str) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(methods.method(method).recipe).parameters


def _compared(method: str, hyperparameters: dict[str, Any], compare: Compare | None) -> Recipe:
    """The recipe of a method. If a judge compares responses, it uses this comparison."""
    if compare is not None:
        if not _compares(method):
            raise ValueError(
                "--judge-prompt must show one response for method"
                f" {method!r}, which does not compare responses, got one that shows two"
            )
        hyperparameters = {**hyperparameters, "compare": compare}
    return methods.recipe(method, **hyperparameters)


def writers_of(record: str) -> list[str]:
    """Returns the parts that write a record, each with the methods that have it."""
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
    """Returns the context of a run for the parts of its experience.

    Args:
      config: resolved settings.
      task: the loaded task.
      chain: the experience of the run.
      vocabulary: number of entries of the vocabulary (V).
      width: of the hidden states (D).
    """
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
    """Returns the stage of module:function, called with the arguments after a second colon."""
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
        raise ValueError(f"--stage {name} must set the arguments {', '.join(missing)}, got none")
    stage = found(**arguments)
    if not isinstance(stage, Stage):
        raise ValueError(f"--stage {name} must return a Stage, got {type(stage).__name__}")
    return stage
