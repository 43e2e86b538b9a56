"""The weights of two policy folders: size and places of changes, and those hidden by rounding."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rlvr_jax.analysis.diagnosis.topics import Table, Topic, curve
from rlvr_jax.analysis.weights.checkpoints import (
    TensorChange,
    compare_folders,
    repeated_unembedding,
)


def parameters(before: Path, after: Path) -> Topic:
    """Topics of the weights of two folders, matrix by matrix.

    Folders that cannot be compared (different tensors, values that are not finite) are named.
    """
    topic = Topic("Weights")
    try:
        changes = compare_folders(before, after)
        repeated = repeated_unembedding(before, after)
    except ValueError as error:
        topic.missing.append(f"Weights: {error}.")
        return topic
    matrices = [change for change in changes if change.angle is not None]
    moved = [change for change in matrices if change.stable_rank is not None]
    if repeated is not None:
        topic.missing.append(
            f"lm_head.weight, which only {repeated} stores, repeats its embedding and is not"
            " compared separately."
        )
    topic.numbers["tensors"] = [change._asdict() for change in changes]
    dtypes = ", ".join(sorted({change.dtype for change in changes}))
    if not moved:
        topic.sentences.append(f"No matrix of {after} differs from {before} ({dtypes}).")
        return topic
    topic.numbers["matrices"] = {name: _mean(moved, name) for name in _SHOWN}
    mean = topic.numbers["matrices"]
    shift, norm = _figure(mean["spectral_shift"], ".2g"), mean["relative_norm"]
    size = "–" if norm is None else f"{100 * norm:.2g} %"
    topic.sentences.append(
        f"The {len(moved)} matrices moved by {size} of their norm (mean). Unchanged entries:"
        f" {100 * mean['unchanged']:.0f} % as stored ({dtypes}),"
        f" {100 * mean['unchanged_bfloat16']:.0f} % as bfloat16."
    )
    topic.sentences.append(
        f"Spectra shifted by {shift}, and the top subspaces turned by up to {mean['angle']:.1f}°."
        f" An update has effective rank {mean['effective_rank']:.0f}, and"
        f" {100 * mean['rank1_energy']:.0f} % of its energy is in one direction."
    )
    _places(topic, moved)
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
_ALIKE = 0.02  # overlaps that differ by less count as equal in sentences


def _places(topic: Topic, moved: Sequence[TensorChange]) -> None:
    """Where the entries lie that changed as bfloat16, of the matrices that have some, as random
    updates of the same size have."""
    some = [c for c in moved if None not in (c.principal_overlap, c.control_overlap)]
    if not some:
        topic.missing.append("The places of changed entries need some that changed in bfloat16.")
        return
    own, control = _mean(some, "principal_overlap"), _mean(some, "control_overlap")
    word = "as" if abs(own - control) < _ALIKE else "less than" if own < control else "more than"
    topic.sentences.append(
        f"Of the entries that changed in bfloat16 (in {len(some)} matrices), {100 * own:.0f} % are"
        f" among the principal fifth of the weights: {word} with random updates of the same size"
        f" ({100 * control:.0f} %)."
    )


def _by_layer(topic: Topic, changes: Sequence[TensorChange]) -> None:
    """Relative change of each layer, by the module of its matrices."""
    parts: dict[str, dict[int, list[float]]] = {}
    for change in changes:
        if change.layer is not None and change.relative_norm is not None:
            module = change.name.split(".")[-3]
            parts.setdefault(module, {}).setdefault(change.layer, []).append(change.relative_norm)
    lines = {
        module: [[layer, float(np.mean(norms))] for layer, norms in sorted(layers.items())]
        for module, layers in parts.items()
    }
    if any(len(line) > 1 for line in lines.values()):
        note = f"norm of the update over that of the matrix, n = {len(changes)} matrices"
        title = "How far each layer moved"
        topic.charts.append(curve(title, "fraction of the norm", note, "layer", lines, zero=True))


def _mean(changes: Sequence[TensorChange], name: str) -> float | None:
    """Mean over the matrices that have the number; None without such matrices."""
    field, power = ("rank1_fraction", 2) if name == "rank1_energy" else (name, 1)
    found = [value for change in changes if (value := getattr(change, field)) is not None]
    return float(np.mean(np.power(found, power))) if found else None


def _figure(value: float | None, form: str = ".3g") -> str:
    return "–" if value is None else f"{value:{form}}"


def _table(changes: Sequence[TensorChange]) -> Table:
    """Means by kind of matrix."""
    rows = []
    for kind in dict.fromkeys(change.kind for change in changes):
        own = [change for change in changes if change.kind == kind]
        rows.append([kind, len(own), *(_figure(_mean(own, name)) for name in _SHOWN)])
    head = ["matrix", "number", *(name.replace("_", " ") for name in _SHOWN)]
    note = (
        "Means. Relative norm: of the update. Unchanged: fraction of entries. Angle: of the top"
        " subspaces, in degrees. Rank1 energy: fraction in the first singular direction. Overlaps:"
        " fraction of the changed entries on the principal weights, the same for random updates"
        " (control), and on the smallest weights (low)."
    )
    return Table("By kind of matrix", head, rows, note)
