"""Rubrics from files: criteria for the points of a judge."""

import json
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from rlvr_jax.arguments import check_arguments
from rlvr_jax.types import Criterion


def check_rubric(rubric: Sequence[Criterion]) -> None:
    """Raises if a rubric cannot be scored.

    Raises:
      ValueError: there are no criteria, a name is empty or has a colon, or two names differ at most
        in case.
    """
    names = [criterion.name for criterion in rubric]
    if not names:
        raise ValueError("rubric: must have criteria, got none")
    for name in names:
        if not name.strip() or ":" in name or "\n" in name:
            raise ValueError(
                f"rubric: names of criteria must be one line without a colon, got {name!r}"
            )
        if [other.lower() for other in names].count(name.lower()) > 1:
            raise ValueError(f"rubric: names of criteria must differ, got {name!r} twice")


def read_rubric(path: Path) -> list[Criterion]:
    """The criteria of a JSON file: a list of objects with the fields of `Criterion`.

    Raises:
      ValueError: there is no such file, or it is not JSON with valid criteria.
    """
    if not path.is_file():
        raise ValueError(f"rubric: must be a file, got {str(path)!r}")
    try:
        listed = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"rubric: {path} must be JSON, got {error}") from None
    if not isinstance(listed, list):
        raise ValueError(f"rubric: {path} must be a list of criteria, got {type(listed).__name__}")
    rubric = []
    for one in listed:
        known = [each.name for each in fields(Criterion)]
        if not isinstance(one, dict) or not {"name"} <= one.keys() <= {*known}:
            raise ValueError(
                f"rubric: criteria must have a name and none but {', '.join(known)}, got {one!r}"
            )
        if not isinstance(one["name"], str) or not isinstance(one.get("text", ""), str):
            raise ValueError(f"rubric: name and text must be texts, got {one!r}")
        check_arguments(Criterion, one)
        rubric.append(Criterion(**one))
    check_rubric(rubric)
    return rubric
