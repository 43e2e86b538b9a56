"""What a room hands out, where its names come from the files in it."""

from collections.abc import Mapping
from types import ModuleType
from typing import Any


def public_names(namespace: Mapping[str, Any]) -> list[str]:
    """The `__all__` of a module that takes over those of others by `from … import *`.

    Args:
      namespace: its `globals()`.
    """
    return sorted(
        name
        for name, value in namespace.items()
        if name[0] != "_" and not isinstance(value, ModuleType) and value is not public_names
    )
