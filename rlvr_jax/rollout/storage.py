"""Stores a batch of rollouts in a file, for example to study losses without a sampler.

The file is a compressed .npz without pickled objects. A field or record is `rollouts/<name>`, a
statistic is `stats/<name>`. `version` is that of this format. The optional `texts` is a JSON object
in UTF-8 as bytes, so that it can have any text. Equal contents have equal bytes.
"""

import dataclasses
import json
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rlvr_jax.types import STATISTICS, Rollouts, TokenStats
from rlvr_jax.types.rollouts import known_names

_VERSION = 1
_OPTIONAL = {"valid", "behaviour_logp", "entropy", "old_logp", "reference_logp", "records"}
_REQUIRED = [
    f"rollouts/{field.name}"
    for field in dataclasses.fields(Rollouts)
    if field.name not in _OPTIONAL
]


def save_rollouts(
    path: str | Path,
    rollouts: Rollouts,
    stats: TokenStats,
    texts: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Writes rollouts and a policy's statistics of their tokens; an existing file is replaced.

    Args:
      path: of the file, by convention with the suffix .npz; used as it is.
      rollouts: rollouts to store.
      stats: [B, T], under the weights a loss would be taken at.
      texts: per name one text for each rollout, e.g. {"prompt": […], "response": […]}.
    Raises:
      ValueError: a statistic with another shape than the mask, an unsupported dtype (bfloat16), or
        not one text per rollout.
    """
    arrays: dict[str, Any] = {"version": np.asarray(_VERSION)}
    arrays |= {f"rollouts/{name}": np.asarray(array) for name, array in rollouts.arrays.items()}
    arrays |= {f"stats/{name}": np.asarray(array) for name, array in stats.arrays.items()}
    shape = arrays["rollouts/mask"].shape
    for name, array in arrays.items():
        if array.dtype.kind not in "biuf":
            raise ValueError(
                f"save_rollouts: {name} must be an array of bool, int or float, got {array.dtype}"
            )
        if name.startswith("stats/") and array.shape != shape:
            raise ValueError(
                f"save_rollouts: {name} must have the shape of rollouts.mask {shape},"
                f" got {array.shape}"
            )
    if texts is not None:
        for name, rows in texts.items():
            if len(rows) != shape[0]:
                raise ValueError(
                    f"save_rollouts: texts[{name!r}] must have one text for each of the"
                    f" {shape[0]} rollouts, got {len(rows)}"
                )
        document = json.dumps({name: list(rows) for name, rows in texts.items()})
        arrays["texts"] = np.frombuffer(document.encode(), np.uint8)
    # Given a name instead of a file, numpy would append a suffix.
    with Path(path).open("wb") as file:
        np.savez_compressed(file, **arrays)


def load_rollouts(path: str | Path) -> tuple[Rollouts, TokenStats, dict[str, list[str]]]:
    """Reads a file of `save_rollouts`; nothing in the file is executed.

    Examples:
      >>> from importlib import resources
      >>> from rlvr_jax.rollout import load_rollouts
      >>> path = resources.files("rlvr_jax") / "rollout/examples/brackets_rollouts.npz"
      >>> rollouts, stats, texts = load_rollouts(path)
      >>> rollouts.tokens.shape, stats.logp.shape, sorted(texts)
      ((512, 24), (512, 24), ['kind', 'prompt', 'response'])

    Returns:
      Rollouts and statistics as numpy arrays, and the texts by name ({} if none were written).
    Raises:
      ValueError: not such a file, another version of the format, an array that is missing, that
        cannot be read or that no imported module declares.
      FileNotFoundError: no such file.
    """
    arrays = _read(Path(path))
    texts = arrays.pop("texts", {})
    parts: dict[str, dict[str, Any]] = {"rollouts": {}, "stats": {}}
    for name, array in arrays.items():
        part, _, field = name.partition("/")
        parts[part][field] = array
    # Files of before this field hold no ungraded row on the mask.
    parts["rollouts"].setdefault("valid", np.ones(len(parts["rollouts"]["group"]), bool))
    return Rollouts.of_arrays(parts["rollouts"]), TokenStats.of_arrays(parts["stats"]), texts


def _read(path):
    """All fields of the file but its version, checked to be those of this format."""
    with path.open("rb") as file:
        if not zipfile.is_zipfile(file):
            raise ValueError(f"load_rollouts: {path} must be an .npz of rollouts, got another file")
        file.seek(0)
        with np.load(file, allow_pickle=False) as archive:
            _check_version(path, archive)
            names = set(archive.files) - {"version"}
            missing = [name for name in _REQUIRED if name not in names]
            if missing:
                raise ValueError(f"load_rollouts: {path} must hold {missing[0]}, got no such field")
            known = {f"rollouts/{name}" for name in known_names()}
            known |= {f"stats/{name}" for name in STATISTICS}
            if unknown := sorted(names - known - {"texts"}):
                raise ValueError(
                    f"load_rollouts: {path} must hold statistics, and fields and declared records"
                    f" of Rollouts, got {unknown[0]}; import the module that declares it"
                )
            return {name: _array(path, archive, name) for name in archive.files if name in names}


def _check_version(path, archive):
    version = _array(path, archive, "version") if "version" in archive.files else "none"
    if str(version) != str(_VERSION):
        raise ValueError(
            f"load_rollouts: {path} must have version {_VERSION} of the format, got {version}"
        )


def _array(path, archive, name):
    try:
        return json.loads(archive[name].tobytes()) if name == "texts" else archive[name]
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"load_rollouts: {name} of {path} cannot be read: {error}") from None
