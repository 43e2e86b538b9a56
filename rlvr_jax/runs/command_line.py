"""Reads the settings of a run from a command line, a file or an earlier run."""

import argparse
import inspect
import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tyro

from rlvr_jax import methods
from rlvr_jax.arguments import as_typed
from rlvr_jax.console import described
from rlvr_jax.runs.config import DataSettings, TrainConfig
from rlvr_jax.runs.config_checks import check_setting
from rlvr_jax.runs.presets import preset
from rlvr_jax.runs.settings import stored_config

_OF_ONE_RUN = ("run_dir", "resume")
"""Settings that a file of settings does not give to another run."""
_OF_START = """Defaults are those of the preset of task and method. --no-preset leaves the preset
out. --config FILE starts from a run's config.json, or from a JSON or TOML file.

    python -m rlvr_jax train --task brackets --method clip_cov --steps 300 --run-dir runs/one"""


def parse_config(
    arguments: Sequence[str], description: str | None = None, start: TrainConfig | None = None
) -> TrainConfig:
    """Reads a command line, whose flags change the preset of its task and method.

    `--config FILE` replaces the preset by the settings of the file, `--no-preset` by the defaults
    and the published hyperparameters, `--resume` by the settings of the run in `--run-dir`.

    Args:
      description: the beginning of `--help`; None: that of the settings.
      start: settings to start from instead of the preset.
    Raises:
      ValueError: an unknown method, or a file that `read_settings` refuses. `resolve` checks the
        settings together.
    """
    given, rest = _given(arguments)
    start = _start(given, start)
    config = tyro.cli(
        TrainConfig,
        args=rest,
        default=start,
        description=described(f"{description or inspect.getdoc(TrainConfig)}\n\n{_OF_START}"),
        config=(tyro.conf.OmitArgPrefixes,),
    )
    if config.hyperparameters != start.hyperparameters:
        merged = {pair.partition("=")[0]: pair for pair in start.hyperparameters}
        merged |= {pair.partition("=")[0]: pair for pair in config.hyperparameters}
        return config.replace(hyperparameters=tuple(merged.values()))
    return config


def _given(arguments: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """The options that decide where settings start, and the arguments that are settings."""
    of_start = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    of_start.add_argument("--config", type=Path)
    of_start.add_argument("--no-preset", action="store_true")
    of_settings = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for name in ("--task", "--method", "--run-dir"):
        of_settings.add_argument(name, nargs="?")
    of_settings.add_argument("--resume", action="store_true")
    try:
        given, rest = of_start.parse_known_args(arguments)
    except argparse.ArgumentError:
        raise ValueError("--config must be a file of settings, got no name") from None
    return of_settings.parse_known_args(rest, given)[0], rest


def _start(given: argparse.Namespace, start: TrainConfig | None) -> TrainConfig:
    """The settings that a command line starts from."""
    if given.resume and given.config:
        raise ValueError(
            f"--config must be left out with --resume, which uses the settings of the run, got"
            f" {str(given.config)!r}"
        )
    directory = Path(given.run_dir or (start or TrainConfig).run_dir)
    stored = stored_config(directory) if given.resume else None
    # Another task or method is refused later, when the settings are compared.
    if stored and given.task in (None, stored.data.task) and given.method in (None, stored.method):
        return stored
    if start is not None and not given.config:
        return start
    values = read_settings(given.config) if given.config else {}
    task = given.task or values.get("task", DataSettings.task)
    method = given.method or values.get("method", TrainConfig.method)
    with as_typed("--method", "method: name", "method"):
        methods.method(method)
    if method != values.get("method", method):
        # The hyperparameters of the file are those of its method.
        values = {n: v for n, v in values.items() if n not in ("hyperparameters", "preset")}
    start = TrainConfig.of(task=task, method=method) if given.no_preset else preset(task, method)
    return start.replace(**values)


def read_settings(path: Path) -> dict[str, Any]:
    """Reads settings by name from a run's config.json or from a JSON or TOML file.

    `run_dir` and `resume` are left out.

    Raises:
      ValueError: a file that cannot be read, an unknown setting, or a value of another type or out
        of range.
    """
    try:
        text = path.expanduser().read_text()
        values = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except OSError as error:
        raise ValueError(f"--config must be a file, got {str(path)!r}: {error.strerror}") from None
    except ValueError as error:
        raise ValueError(f"--config must be JSON or TOML, got {str(path)!r}: {error}") from None
    values = values.get("settings", values) if isinstance(values, Mapping) else values
    if not isinstance(values, Mapping):
        raise ValueError(f"--config must contain settings by name, got {str(path)!r}")
    try:
        return {n: check_setting(n, value) for n, value in values.items() if n not in _OF_ONE_RUN}
    except ValueError as error:
        raise ValueError(f"--config {path}: {error}") from None
