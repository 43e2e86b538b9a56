"""Stored weights and their addresses, `tinker://MODEL/weights/NAME`."""

import re
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from rlvr_jax.server.learner import Learner
from rlvr_jax.server.models import Spec
from rlvr_jax.server.refusal import Refused
from rlvr_jax.server.storage import read_about, write_arrays

WEIGHTS, SAMPLER_WEIGHTS = "weights", "sampler_weights"
"""Kinds of stored weights: with the optimizer, and for sampling only."""

UNNAMED, UNNAMED_STORED = "unnamed", 8
"""Kind of the weights of samplers without a name, and how many of a model are stored."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_SUFFIX = ".safetensors"


class Address(NamedTuple):
    """The parts of `tinker://MODEL/KIND/NAME`."""

    model_id: str
    kind: str
    name: str

    def __str__(self) -> str:
        return f"tinker://{self.model_id}/{self.kind}/{self.name}"


def checked_name(name: Any) -> str:
    """A name of stored weights.

    Raises:
      Refused: anything but letters, digits, dots, dashes and underscores.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise Refused(
            "path must be a name of up to 100 letters, digits, dots, dashes and underscores that"
            f" begins with a letter or digit, got {name!r:.120}"
        )
    return name


def parse_address(path: Any) -> Address:
    """Reads the address of stored weights.

    Raises:
      Refused: another form.
    """
    parts = path.removeprefix("tinker://").split("/") if isinstance(path, str) else []
    if len(parts) != 3 or parts[1] not in (WEIGHTS, SAMPLER_WEIGHTS):
        raise Refused(
            f"path must be tinker://MODEL/{WEIGHTS}/NAME or tinker://MODEL/{SAMPLER_WEIGHTS}/NAME,"
            f" got {path!r:.120}"
        )
    return Address(parts[0], parts[1], checked_name(parts[2]))


def stored_file(folder: Path, kind: str, name: str) -> Path:
    """The file of stored weights in the folder of their model."""
    return folder / kind / f"{name}{_SUFFIX}"


def store(file: Path, learner: Learner, optimizer: bool, request: str) -> None:
    """Writes the weights of a model, and its optimizer if that is wanted.

    Args:
      file: of `stored_file`; an earlier file is replaced.
      learner: the model.
      optimizer: True: the state of the optimizer is also written.
      request: identity of the request; the same one may come again after a restart.
    """
    about = {"spec": asdict(learner.spec), "request": request}
    write_arrays(file, learner.state() if optimizer else learner.weights(), about)


def check_new(file: Path, request: str) -> None:
    """Refuses a name that is taken by another request."""
    if file.exists() and read_about(file)["request"] != request:
        raise Refused(
            f"path must be new, got {file.stem}, which is stored already; set overwrite, or use"
            " another name"
        )


def stored_spec(file: Path) -> Spec:
    """The spec of the model of stored weights.

    Raises:
      Refused: there is no such file.
    """
    if not file.is_file():
        raise Refused(
            f"weights must be stored, found none of the name {file.stem}; those of samplers without"
            f" a name are stored for the last {UNNAMED_STORED} of a model",
            404,
        )
    return Spec(**read_about(file)["spec"])


def drop_old_unnamed(folder: Path) -> None:
    """Removes the weights of all but the last samplers without a name of a model."""
    files = sorted((folder / UNNAMED).glob(f"*{_SUFFIX}"), key=lambda file: int(file.stem))
    for file in files[:-UNNAMED_STORED]:
        file.unlink()


def listed(folder: Path, model_id: str) -> Iterator[dict[str, Any]]:
    """The named weights of a model, in the protocol's words."""
    for kind, word in ((WEIGHTS, "training"), (SAMPLER_WEIGHTS, "sampler")):
        for file in sorted((folder / kind).glob(f"*{_SUFFIX}")):
            stat = file.stat()
            yield {
                "checkpoint_id": f"{kind}/{file.stem}",
                "checkpoint_type": word,
                "time": datetime.fromtimestamp(stat.st_mtime, UTC).isoformat(),
                "tinker_path": str(Address(model_id, kind, file.stem)),
                "size_bytes": stat.st_size,
            }
