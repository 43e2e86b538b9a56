"""Settings of a run: their resolved values, their display, and their comparison."""

import inspect
import json
from pathlib import Path
from typing import Any

from rlvr_jax import methods
from rlvr_jax.runs.config import SETTINGS, TrainConfig, flag
from rlvr_jax.runs.hyperparameters import plain
from rlvr_jax.runs.run import Run

_OF_METHOD = "method."
"""The prefix of hyperparameters in a dictionary with settings."""
# Settings that may differ between a run and its continuation.
_FREE = {
    "preset",
    "run_dir",
    "resume",
    "steps",
    "checkpoint_every",
    "samples_stored",
    "log_to",
    "verbose",
    "judge_budget",
    "mesh",
    "sample_mesh",
    "sampling_batches",
    "rows_at_once",
    "micro_batches",
    "remat",
    "compile_cache",
    "engine_address",
    "engine_command",
    "engine_seconds",
    "probe_every",
    "largest_gap",
}


def stored_config(directory: Path) -> TrainConfig | None:
    """Returns the initial settings of the run in a directory; None: there is no such run."""
    try:
        stored = dict(json.loads((directory / "config.json").read_text())["settings"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    values = {name: value for name, value in stored.items() if name in SETTINGS}
    lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    return TrainConfig.of(**{**values, **lists, "run_dir": directory})


def resolved_settings(run: Run) -> dict[str, Any]:
    """Returns the values of settings that are a rule, and those that the method prescribes."""
    names = ["temperature", "top_k", "top_p", "min_p", "learning_rate", "sampling_batches"]
    names += ["micro_batches", "response_tokens", "prompt_tokens", "evaluate_every"]
    names += ["critic_learning_rate"] * (run.recipe.critic is not None)
    values = run.config.flat
    return {name: values[name] for name in names}


def shown_settings(card: dict[str, Any]) -> dict[str, Any]:
    """Returns all settings of a card. Hyperparameters have a prefix, since names may be equal. A 0
    that is a rule is replaced by its resolved value, if the card has it."""
    settings = {**card["settings"], "model": card["model"], **card.get("resolved", {})}
    del settings["hyperparameters"]
    return settings | {_OF_METHOD + name: value for name, value in card["hyperparameters"].items()}


def check_settings(stored: dict[str, Any], now: dict[str, Any]) -> None:
    """Refuses to resume a run with other settings that affect its results.

    Args:
      stored, now: `TrainConfig.to_json` of the run and of the request.
    """
    # A setting that the version of the run did not have has its present default.
    defaults = TrainConfig().to_json()
    before, after = ({**defaults, **settings} for settings in (stored, now))
    names = (before.keys() | after.keys()) - _FREE
    # Another method also differs in its hyperparameters, which is less informative.
    for name in sorted(names, key=lambda name: (name != "method", name)):
        if before.get(name) != after.get(name):
            own = name.removeprefix(_OF_METHOD)
            typed = flag(name) if name == own else f"--hyperparameters {own}"
            raise ValueError(
                f"--resume: {typed} must be {before.get(name)!r} as in the run,"
                f" got {after.get(name)!r}"
            )


def check_same_run(stored: dict[str, Any], now: dict[str, Any]) -> None:
    """Refuses to resume a run with other settings, another method or other data.

    Args:
      stored, now: cards (`ResolvedRun.card`) of the run and of the request. Values that the run's
        version did not write are not compared; a hyperparameter that it did not have had its
        default.
    """
    needed = {"settings", "hyperparameters", "model", "task_fingerprint"}
    if not needed <= stored.keys():
        raise ValueError(
            f"--resume: config.json must have the entries {sorted(needed)}, got {sorted(stored)}"
        )
    if stored["task_fingerprint"] != now["task_fingerprint"]:
        raise ValueError(
            f"--resume: the prompts of task {now['task']!r} must be those of the run (fingerprint"
            f" {stored['task_fingerprint']}), got {now['task_fingerprint']}"
        )
    for name in ("mixture", "response_tokens"):
        if stored.get(name, now[name]) != now[name]:
            raise ValueError(
                f"--resume: the {name.replace('_', ' ')} of task {now['task']!r} must be"
                f" {stored[name]} as in the run, got {now[name]}"
            )
    for name, text in stored.get("judge_files", {}).items():
        if (got := now.get("judge_files", {}).get(name, text)) != text:
            raise ValueError(
                f"--resume: the file of {flag(name)} must be unchanged, {text[:80]!r}, got"
                f" {got[:80]!r}"
            )
    missing = now["hyperparameters"].keys() - stored["hyperparameters"].keys()
    if missing and stored["settings"].get("method") == now["settings"]["method"]:
        parameters = inspect.signature(methods.method(now["method"]).recipe).parameters
        defaults = {name: plain(parameters[name].default) for name in missing}
        stored = {**stored, "hyperparameters": defaults | stored["hyperparameters"]}
    cards = (dict(card, resolved={}) for card in (stored, now))
    check_settings(*map(shown_settings, cards))
