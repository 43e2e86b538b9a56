"""Resolves the settings of a run once: a value for each rule, the task, the recipe."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax

import rlvr_jax
from rlvr_jax import methods, tasks
from rlvr_jax.arguments import as_typed
from rlvr_jax.experience import experience
from rlvr_jax.methods.arguments import parse_hyperparameters
from rlvr_jax.objectives import Objective, measured_against
from rlvr_jax.parallel import faster_dtype
from rlvr_jax.rollout import Sampling
from rlvr_jax.runs.composition import compose
from rlvr_jax.runs.config import TrainConfig
from rlvr_jax.runs.config_checks import check_config
from rlvr_jax.runs.hyperparameters import method_arguments, plain
from rlvr_jax.runs.judging import asked_by_files
from rlvr_jax.runs.presets import preset
from rlvr_jax.runs.task import Load, load_task, policy_path
from rlvr_jax.tasks import Task
from rlvr_jax.types import Recipe, replace


@dataclass(frozen=True)
class ResolvedRun:
    """All values that a run depends on before its policy is loaded.

    Fields:
      given: the settings from the user; a resumed run is compared with them.
      config: the settings with a value in place of each rule.
      sampling: settings of the sampler, with those that the method prescribes.
      hyperparameters: all hyperparameters of the method.
      recipe: that of the method, with the experience that the settings request.
    """

    given: TrainConfig
    config: TrainConfig
    sampling: Sampling
    task: Task
    hyperparameters: Mapping[str, Any]
    recipe: Recipe

    def card(self) -> dict[str, Any]:
        """Returns the content of the run's `config.json`."""
        config, recipe = self.given, self.recipe
        terms, usual = list(recipe.objective.labels), experience().labels
        if recipe.critic is not None:
            terms.append(f"critic: {recipe.critic.label}")
        terms += [f"experience: {name}" for name in recipe.experience.labels if name not in usual]
        card = {
            "method": config.method,
            "task": config.data.task,
            "seed": config.seed,
            "model": self.config.policy.model,
            "loss_terms": list(map(plain, terms)),
            "settings": config.to_json(),
            "hyperparameters": {name: plain(each) for name, each in self.hyperparameters.items()},
            "task_fingerprint": self.task.fingerprint(),
            "task_notes": list(self.task.notes),
            "mixture": dict(self.task.mixture),
            "response_tokens": self.config.sampling.response_tokens,
            "versions": {"rlvr_jax": rlvr_jax.__version__, "jax": jax.__version__},
        }
        if files := asked_by_files(config):
            card["judge_files"] = files
        return card


def resolve(
    config: TrainConfig,
    task: Task | None = None,
    recipe: Recipe | None = None,
    load: Load = tasks.load_as_written,
) -> ResolvedRun:
    """Resolves the settings of a run with its task and its method.

    Args:
      config: settings, as they were given.
      task: a loaded task; None: that of the settings, which `load` loads.
      recipe: replaces the recipe of the method; the settings still compose its experience.
      load: (name, options, columns) -> task.
    Raises:
      ValueError: invalid settings or hyperparameters, before anything is loaded; an invalid task or
        recipe, or settings that do not fit them.
    """
    check_config(config)
    if config.policy.compute_dtype == "auto":
        # Part of what is given, so that a resumed run has the same one on any machine.
        config = config.replace(compute_dtype=faster_dtype())
    given = parse_hyperparameters(config.method, config.hyperparameters)
    task = load_task(config, load) if task is None else task
    own = with_rules(with_task(config, task))
    hyperparameters = method_arguments(own, given, environment=task.environment is not None)
    if recipe is None:
        with as_typed(f"--hyperparameters of {own.method}", own.method, "Recipe", ""):
            recipe = methods.recipe(own.method, **hyperparameters)
    if recipe.teacher == "":
        raise ValueError(
            f"--hyperparameters: teacher of {own.method} must be a policy folder with the tokens"
            " and shape of the policy, or average:<decay>, got ''. The method learns only from it"
        )
    recipe = compose(own, task, recipe, hyperparameters)
    if own.update.compared_with:
        objective = measured_against(recipe.objective, _compared_objective(own))
        recipe = replace(recipe, objective=objective)
    return ResolvedRun(config, *settle(own, recipe), task, hyperparameters, recipe)


def _compared_objective(config: TrainConfig) -> Objective:
    """The loss that the run's loss is compared with, that of the preset of its task and method."""
    name = config.update.compared_with
    with as_typed("--compared-with", "method: name", "method"):
        given = parse_hyperparameters(name, preset(config.data.task, name).hyperparameters)
    return methods.recipe(name, **method_arguments(config, given, name)).objective


def with_task(config: TrainConfig, task: Task) -> TrainConfig:
    """Returns the settings; an empty policy or response budget is replaced by that of the task.

    Raises:
      ValueError: neither has a policy.
    """
    model = policy_path(config.policy, task)
    if not model:
        raise ValueError(
            f"--model must be a policy folder for task {config.data.task!r}, which has none, got ''"
        )
    budget = config.sampling.response_tokens or task.response_tokens
    return config.replace(model=model, response_tokens=budget)


def with_rules(config: TrainConfig) -> TrainConfig:
    """Returns the settings with a value in place of each rule that depends only on settings."""
    rate = 2e-5 if config.policy.lora_rank else 1e-6
    return config.replace(
        learning_rate=rate if (own := config.optimizer.learning_rate) is None else own,
        sampling_batches=config.sampling.sampling_batches or 1,
        evaluate_every=config.evaluation.evaluate_every or max(1, config.steps // 10),
    )


def settle(config: TrainConfig, recipe: Recipe) -> tuple[TrainConfig, Sampling]:
    """Returns the settings with the values of the method, and the settings of the sampler.

    Args:
      config: of `with_rules`.
    Raises:
      ValueError: a setting that contradicts the sampler of the method.
    """
    _, draw = (recipe.experience or experience()).draw
    sampling = config.sampler(draw.sampling)
    names = ("temperature", "top_k", "top_p", "min_p")
    values = {name: getattr(sampling, name) for name in names}
    if recipe.critic is not None:
        own, rate = config.optimizer.critic_learning_rate, config.optimizer.learning_rate
        values["critic_learning_rate"] = own or 5 * rate
    return config.replace(**values), sampling
