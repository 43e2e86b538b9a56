"""Rubrics from files: criteria that a judge gives points for."""

import json
from collections.abc import Sequence
from pathlib import Path

from rlvr_jax.types import Criterion

_FIELDS = ("name", "text", "weight", "maximum", "kind")


def check_rubric(rubric: Sequence[Criterion]) -> None:
    """Refuses a rubric that nobody can score.

    Raises:
      ValueError: no criteria, one without a name or with a colon in it, or two of one name,
        capitals apart.
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
    """The criteria of a JSON file: a list of objects with a name, and if wanted text, weight,
    maximum, kind (`Criterion`).

    Raises:
      ValueError: no such file, no JSON, other fields, values that do not fit, no criteria.
    """
    if not path.is_file():
        raise ValueError(f"rubric: must be a file, got {str(path)!r}")
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"rubric: {path} must be JSON, got {error}") from None
    if not isinstance(told, list):
        raise ValueError(f"rubric: {path} must be a list of criteria, got {type(told).__name__}")
    rubric = []
    for one in told:
        if not isinstance(one, dict) or not {"name"} <= one.keys() <= {*_FIELDS}:
            raise ValueError(
                f"rubric: criteria must have a name and none but {', '.join(_FIELDS)}, got {one!r}"
            )
        if not isinstance(one["name"], str) or not isinstance(one.get("text", ""), str):
            raise ValueError(f"rubric: name and text must be texts, got {one!r}")
        for name in ("weight", "maximum"):
            value = one.get(name, 1.0)
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise ValueError(f"rubric: {name} must be a number, got {value!r}")
        rubric.append(Criterion(**one))
    check_rubric(rubric)
    return rubric
