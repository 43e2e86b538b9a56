"""Paths: the files that a task's name means, and which of them are test files.

    questions.jsonl        a file; ~ is the home folder
    part_*.jsonl.gz        all files of a pattern, ** goes through folders
    a.jsonl,b.jsonl        several
    folder                 all files of the kind in it and below

In a folder or a pattern the names define the splits, as on the Hugging Face hub: if there are files
of `train` and of `test` (or `validation`), `test` is the test split.
"""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ENDINGS: dict[str, tuple[str, ...]] = {
    "jsonl": (".jsonl", ".ndjson"),
    "json": (".json",),
    "csv": (".csv", ".tsv"),
    "parquet": (".parquet",),
    "arrow": (".arrow",),
}
# Files that the package `datasets` writes next to its data.
_BESIDE = {"dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json"}
_SPLITS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("test", "testing"), "test"),
    **dict.fromkeys(("validation", "valid", "val", "dev"), "validation"),
}


@dataclass(frozen=True)
class Files:
    """The files of a path.

    Fields:
      train: all files, or only the train files if the names define splits.
      test: the test files; empty if the names do not define splits.
      notes: sentences about files that are not read.
    """

    train: tuple[Path, ...]
    test: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()


def find_files(kind: str, path: str) -> Files:
    """The files that a path means.

    Args:
      kind: one of `ENDINGS`.
      path: a path in one of the forms above.
    Raises:
      ValueError: there is no such file, or a folder has no file of the kind.
    """
    files, folder = _expanded(kind, path)
    return Files(files) if folder is None else _by_split(files, folder)


def _expanded(kind: str, path: str) -> tuple[tuple[Path, ...], Path | None]:
    """All files that a path means, and the folder in which their names define splits."""
    own = Path(path).expanduser()
    if own.is_dir():
        return _inside(kind, path, own), own
    if own.exists():
        return (own,), None
    if any(sign in path for sign in "*?["):
        start = Path(own.anchor or ".")
        found = sorted(p for p in start.glob(str(own.relative_to(own.anchor))) if p.is_file())
        if found:
            return tuple(found), own.parent
    parts = [part.strip() for part in path.split(",")]
    option = next((part for part in parts[1:] if re.match(r"\w+=", part)), None)
    if option is not None:
        raise ValueError(
            f"{kind}: options must be outside the name, --task-options {option}"
            f" (load(…, {option.partition('=')[0]}=…) in Python), got them in {path!r}"
        )
    if len(parts) > 1 and all(parts):
        files = [file for part in parts for file in _expanded(kind, part)[0]]
        return tuple(dict.fromkeys(files)), None
    raise ValueError(_missing(kind, path, own))


def listed(files: Sequence[Path], folder: Path | None = None, most: int = 3) -> str:
    """Names of files for a sentence.

    Args:
      folder: names are relative to it.
      most: largest number of names; the other files are counted.
    """
    inside = [file if folder is None else file.relative_to(folder) for file in files[:most]]
    names = ", ".join(file.name if folder is None else str(file) for file in inside)
    return names + (f" and {len(files) - most} more" if len(files) > most else "")


def _inside(kind: str, path: str, folder: Path) -> tuple[Path, ...]:
    files = [
        file
        for file in sorted(folder.rglob("*"))
        if file.is_file() and not any(p.startswith(".") for p in file.relative_to(folder).parts)
    ]
    own = [file for file in files if _kind(file) == kind and not file.name.startswith("cache-")]
    if not own:
        there = sorted({known for file in files if (known := _kind(file))})
        hint = f"; it has files for {', '.join(f'{k}:{path}' for k in there)}" if there else ""
        raise ValueError(
            f"{kind}: path must be a folder with files that end with {', '.join(ENDINGS[kind])}"
            f" (or .gz after it), got {path!r}, which has none{hint}"
        )
    return tuple(own)


def _kind(file: Path) -> str | None:
    name = file.name.lower().removesuffix(".gz")
    if name in _BESIDE:
        return None
    return next((kind for kind, ends in ENDINGS.items() if name.endswith(ends)), None)


def _by_split(files: Sequence[Path], folder: Path) -> Files:
    splits: dict[str | None, list[Path]] = {}
    for file in files:
        splits.setdefault(_split(file, folder), []).append(file)
    held_out = "test" if "test" in splits else "validation"
    if not {"train", held_out} <= splits.keys():
        return Files(tuple(files))
    rest = [f for name, own in splits.items() if name not in ("train", held_out) for f in own]
    within = folder if all(file.is_relative_to(folder) for file in files) else None
    names = listed(splits[held_out], within)
    notes = [f"the files' names define the splits: {held_out} is {names}"]
    if rest:
        notes.append(f"{len(rest)} files of neither split are not read: {listed(rest, within)}")
    return Files(tuple(splits["train"]), tuple(splits[held_out]), tuple(notes))


def _split(file: Path, folder: Path) -> str | None:
    """The split by a file's name, or else by its folder."""
    inside = file.relative_to(folder).parts if file.is_relative_to(folder) else (file.name,)
    for part in reversed(inside):
        for word in re.split(r"[^a-z]+", part.lower()):
            if word in _SPLITS:
                return _SPLITS[word]
    return None


def _missing(kind: str, path: str, own: Path) -> str:
    if any(sign in path for sign in "*?["):
        return f"{kind}: path must match files, got {path!r}, which matches none"
    names = [file.name for file in own.parent.iterdir()] if own.parent.is_dir() else []
    close = difflib.get_close_matches(own.name, names, n=1)
    hint = f"; closest: {own.parent / close[0]}" if close else ""
    if re.match(r"\w+://", path):
        hint = "; it must be on this machine"
    return f"{kind}: path must be a readable file or folder, got {path!r}, which is not there{hint}"
