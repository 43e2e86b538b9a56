"""Additional receivers of the metrics of a run: third-party trackers and custom functions."""

import importlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rlvr_jax.own import own_function

_Log = Callable[[Mapping[str, float], int], Any]
_PROJECT = "rlvr_jax"
_PACKAGES = ("trackio", "wandb")


class Tracker(NamedTuple):
    """The receiver of every step's metrics.

    Fields:
      log: (metrics, step), the numbers of a line of metrics.jsonl that are numbers.
      close: after the last one.
    """

    log: _Log
    close: Callable[[], Any]


def check_trackers(names: Sequence[str]) -> None:
    """Refuses unknown trackers before anything is loaded.

    Raises:
      ValueError: an unknown name, a package that is not installed (with the command that installs
        it), or a custom function that does not exist.
    """
    for name in names:
        if ":" in name:
            own_function("--log-to", name)
        elif name not in _PACKAGES:
            raise ValueError(
                f"--log-to must be among {', '.join(_PACKAGES)}, or a custom"
                f" module:function, got {name!r}"
            )
        elif importlib.util.find_spec(name) is None:
            raise ValueError(
                f"--log-to {name} needs the package {name}, which is not installed: run"
                f" `pip install {name}`"
            )


def make_trackers(
    names: Sequence[str], directory: Path, card: Mapping[str, Any], resumed: bool
) -> list[Tracker]:
    """Begins a run with each tracker. Environment variables of a tracker set its destination
    (`WANDB_MODE=offline` stores the run in the run directory).

    Args:
      names: trackers by name or as module:function, already checked.
      directory: run directory. Its name names the run, and it contains the trackers' files.
      card: card of the run. Its settings are also sent.
      resumed: the tracker continues a run of that name, if there is one.
    """
    made = []
    for name in names:
        if ":" in name:
            made.append(Tracker(own_function("--log-to", name), lambda: None))
            continue
        own: dict[str, Any] = {"resume": "allow" if resumed else "never"}
        if name == "wandb":
            own = {"dir": str(directory)}
            own |= {"id": _identity(directory), "resume": "allow" if resumed else None}
        settings = {**card["settings"], "hyperparameters": card["hyperparameters"]}
        try:
            package = importlib.import_module(name)
            run = package.init(project=_PROJECT, name=_identity(directory), config=settings, **own)
        except Exception as error:  # of another package
            offline = "; WANDB_MODE=offline stores it here" if name == "wandb" else ""
            raise ValueError(
                f"--log-to {name} must start a run, got {type(error).__name__}: {error}{offline};"
                " then continue this run with --resume"
            ) from error
        made.append(Tracker(_called(run), run.finish))
    return made


def _called(run: Any) -> _Log:
    def log(metrics: Mapping[str, float], step: int) -> None:
        run.log(dict(metrics), step=step)

    return log


def _identity(directory: Path) -> str:
    """The directory's path in letters that are valid in an address."""
    text = "-".join(directory.resolve().parts[-3:])
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in text)
