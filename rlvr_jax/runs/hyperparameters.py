"""Hyperparameters of a run's method: given ones, values of the run, and defaults."""

import inspect
import re
from collections.abc import Mapping
from typing import Any

from rlvr_jax import methods
from rlvr_jax.arguments import annotations_of, hints_of
from rlvr_jax.methods.arguments import parse_hyperparameters
from rlvr_jax.runs.config import TrainConfig
from rlvr_jax.types.hyperparameters import OfRun

# Parameters that take any number of arguments.
_MANY = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def method_arguments(
    config: TrainConfig,
    given: Mapping[str, Any] | None = None,
    method: str | None = None,
    environment: bool = False,
) -> dict[str, Any]:
    """Returns all hyperparameters of a method: given values, values of the run, defaults.

    A parameter whose type carries `OfRun`, such as `MaxLength`, takes the value of the run.

    Args:
      config: with a response budget and a learning rate, see `resolve`.
      environment: the task has an environment, which methods with tools then use.
      given: as `parse_hyperparameters` reads them; None: those of the settings.
      method: another method; None: that of the run.
    Raises:
      ValueError: a hyperparameter without default is not given.
    """
    if given is None:
        given = parse_hyperparameters(config.method, config.hyperparameters)
    method = config.method if method is None else method
    recipe = methods.method(method).recipe
    values = {
        name: each.default
        for name, each in inspect.signature(recipe).parameters.items()
        if each.kind not in _MANY
    }
    run = config.flat | {"updates": config.plan.updates}
    for name in values:
        for known in annotations_of(hints_of(recipe).get(name)):
            if not isinstance(known, OfRun):
                continue
            if known.setting != "environment":
                value = run[known.setting]
                values[name] = value if known.divisor == 1 else max(1, value // known.divisor)
            elif environment:
                values[name] = None
    values |= given
    for name, value in values.items():
        if value is inspect.Parameter.empty:
            raise ValueError(
                f"--hyperparameters must set {name} of {method}, which has no default,"
                f" got {', '.join(given) or 'none'}"
            )
    return values


def plain(value: Any) -> Any:
    """Returns the value if JSON has its type, else its text. Functions and types are replaced by
    their names, since their texts have addresses of this process."""
    if isinstance(value, (bool, int, float, type(None))):
        return value
    return re.sub(r"<(?:function )?(\S+?)(?: object)? at 0x[0-9a-f]+>", r"\1", str(value))
