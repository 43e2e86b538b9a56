"""The weights of two policy folders: how far they moved, where, and how much storage hid."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rlvr_jax.analysis.diagnosis.topics import Topic, curve
from rlvr_jax.analysis.weights.checkpoints import TensorChange, compare_folders

__all__ = ["parameters"]


def parameters(before: Path, after: Path) -> Topic:
    """What two folders say, matrix by matrix.

    Raises:
      ValueError: a folder that holds no safetensors, or other tensors than the first.
    """
    changes = compare_folders(before, after)
    topic = Topic("Weights")
    matrices = [change for change in changes if change.angle is not None]
    moved = [change for change in matrices if change.stable_rank is not None]
    topic.numbers["tensors"] = [change._asdict() for change in changes]
    dtypes = ", ".join(sorted({change.dtype for change in changes}))
    if not moved:
        topic.sentences.append(f"No matrix of {after} differs from {before} ({dtypes}).")
        return topic
    topic.numbers["matrices"] = {name: _mean(moved, name) for name in _SHOWN}
    mean = topic.numbers["matrices"]
    topic.sentences.append(
        f"The {len(moved)} matrices moved by {100 * mean['relative_norm']:.2g} % of their norm"
        f" (mean; stored as {dtypes}); {100 * mean['unchanged']:.0f} % of the entries are equal as"
        f" stored, {100 * mean['unchanged_bfloat16']:.0f} % as bfloat16. Spectra shifted by"
        f" {mean['spectral_shift']:.2g}, the top subspaces turned by up to {mean['angle']:.1f}°;"
        f" an update has effective rank {mean['effective_rank']:.0f} and"
        f" {100 * mean['rank1_energy']:.0f} % of its energy in one direction."
    )
    own, control = mean["principal_overlap"], mean["control_overlap"]
    word = "as" if abs(own - control) < _ALIKE else "less than" if own < control else "more than"
    topic.sentences.append(
        f"Entries that changed in bfloat16 lie on the principal fifth in {100 * own:.0f} % of the"
        f" cases, {word} those of random updates of the same size ({100 * control:.0f} %; chance"
        " without storage 20 %)."
    )
    topic.tables.append(_table(moved))
    _by_layer(topic, moved)
    return topic


_SHOWN = (
    "relative_norm",
    "unchanged",
    "unchanged_bfloat16",
    "spectral_shift",
    "angle",
    "effective_rank",
    "rank1_energy",
    "principal_overlap",
    "control_overlap",
    "low_overlap",
)
_ALIKE = 0.02  # of overlaps that are not told apart in words


def _by_layer(topic: Topic, changes: Sequence[TensorChange]) -> None:
    """How far each layer moved, by the module its matrices stand in."""
    parts: dict[str, dict[int, list[float]]] = {}
    for change in changes:
        if change.layer is not None:
            module = change.name.split(".")[-3]
            parts.setdefault(module, {}).setdefault(change.layer, []).append(change.relative_norm)
    lines = {
        module: [[layer, float(np.mean(norms))] for layer, norms in sorted(layers.items())]
        for module, layers in parts.items()
    }
    if any(len(line) > 1 for line in lines.values()):
        note = f"norm of the update over that of the matrix, n = {len(changes)} matrices"
        title = "How far each layer moved"
        topic.charts.append(curve(title, "share of the norm", note, "layer", lines, zero=True))


def _mean(changes: Sequence[TensorChange], name: str) -> float:
    if name == "rank1_energy":
        return float(np.mean([change.rank1_share**2 for change in changes]))
    return float(np.mean([getattr(change, name) for change in changes]))


def _table(changes: Sequence[TensorChange]) -> tuple[str, list[str], list[list]]:
    """Means by kind of matrix."""
    rows = []
    for kind in dict.fromkeys(change.kind for change in changes):
        own = [change for change in changes if change.kind == kind]
        rows.append([kind, len(own), *(f"{_mean(own, name):.3g}" for name in _SHOWN)])
    head = ["matrix", "number", *(name.replace("_", " ") for name in _SHOWN)]
    return "By kind of matrix (means; the angle in degrees)", head, rows
