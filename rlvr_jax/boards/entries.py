"""Settings of one of several runs: a method's name, then settings that others do not have."""

import inspect
import re
from collections.abc import Mapping, Sequence
from typing import Any

from rlvr_jax import methods
from rlvr_jax.arguments import as_typed
from rlvr_jax.runs.command_line import parse_config
from rlvr_jax.runs.config import SETTINGS, TrainConfig


def entry_config(
    entry: str, shared: Mapping[str, Any], lists: Mapping[str, Sequence[str]] = {}
) -> TrainConfig:
    """Settings of one run: the presets, then the shared settings, then those of its entry.

    Args:
      entry: "name", "name:setting=value,…", or the same with module:function for a name. A name
        that is both a hyperparameter and a setting of a run means the hyperparameter.
      shared: settings of all runs by name, with `run_dir` and `seed` of this one.
      lists: settings of all runs that are several words, such as `task_options`.
    Raises:
      ValueError: an unknown method or setting, a value that cannot be read, or a setting that all
        runs share.
    """
    method, _, given = entry.partition(":")
    function, _, others = given.partition(":")
    if function and "=" not in function:  # module:function
        method, given = f"{method}:{function}", others
    with as_typed("--methods", "method"):
        own = inspect.signature(methods.method(method).recipe).parameters
    options = {"method": method, **shared}
    hyperparameters = []
    # A value may contain commas: text without a name belongs to the value before it.
    for pair in filter(None, re.split(r",(?=[^,=]*=)", given)):
        name, equals, value = pair.partition("=")
        if name in own:
            hyperparameters.append(pair)
        elif not equals or name in (*options, *lists):
            raise ValueError(
                "--methods must be name:setting=value,… of settings that this command does not set"
                f" itself, got {entry!r}"
            )
        elif name in SETTINGS:
            options[name] = value
        else:
            hyperparameters.append(pair)
    line = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    for name, values in {"hyperparameters": hyperparameters, **lists}.items():
        line += [f"--{name.replace('_', '-')}", *values] if values else []
    return parse_config(line)
