"""Reads JSON files of third-party folders."""

import json
from typing import Any


def json_object(text: str | bytes, source: Any) -> dict[str, Any]:
    """Reads one JSON object.

    Args:
      text: contents of the file.
      source: the file's path or name, for errors.
    """
    try:
        read = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{source} must hold a JSON object, got text with {error}") from None
    if not isinstance(read, dict):
        raise ValueError(f"{source} must hold a JSON object, got a {type(read).__name__}")
    return read
