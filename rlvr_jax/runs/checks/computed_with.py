"""Fingerprints of the policies that a run reads. A resumed run must find equal ones."""

from collections.abc import Mapping
from typing import Any

from rlvr_jax import parallel, policy
from rlvr_jax.runs.config import TrainConfig
from rlvr_jax.types import Recipe


def computed_with(config: TrainConfig, recipe: Recipe, model: str) -> dict[str, dict[str, Any]]:
    """Returns `policy.fingerprint` and path of the folders that a run reads, by role. The roles are
    policy (also the reference), teacher and judge. The first process reads them for all.

    Raises:
      ValueError: as `policy.fingerprint`.
    """
    folders = {"policy": model}
    if recipe.teacher not in (None, "start") and recipe.teacher_decay is None:
        folders["teacher"] = recipe.teacher
    kind, _, name = config.judging.judge.partition(":")
    if kind == "folder":
        folders["judge"] = name
    found = {}
    if parallel.is_first():
        found = {role: {"path": path, **policy.fingerprint(path)} for role, path in folders.items()}
    return parallel.gather(found)[0]


def check_computed_with(
    stored: Mapping[str, Mapping[str, Any]], now: Mapping[str, Mapping[str, Any]]
) -> None:
    """Refuses to resume a run with other policies than its initial ones.

    Args:
      stored: of the run; entries that its version did not write are not compared.
    """
    for role, before in stored.items():
        after = now.get(role, before)
        where = f"of the {role} {after['path']} must be"
        mend = "restore the folder, or start a new run in another --run-dir"
        constants = before["configuration"].keys() & after["configuration"].keys()
        for name in sorted(constants):
            one, two = (values["configuration"][name] for values in (before, after))
            if one != two:
                raise ValueError(f"--resume: {name} {where} {one} as in the run, got {two}; {mend}")
        if before["stop_tokens"] != after["stop_tokens"]:
            raise ValueError(
                f"--resume: the stop tokens {where} {before['stop_tokens']} as in the run, got"
                f" {after['stop_tokens']} (eos_token of tokenizer_config.json, eos_token_id of"
                f" generation_config.json); {mend}"
            )
        for name in ("weights", "tokenizer"):
            if before[name] != after[name]:
                raise ValueError(
                    f"--resume: the {name} {where} as in the run (fingerprint {before[name]}), got"
                    f" other values ({after[name]}); {mend}"
                )
