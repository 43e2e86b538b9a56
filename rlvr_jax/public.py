"""Public names of a package whose names come from its modules."""

from collections.abc import Callable, Mapping
from typing import Any, get_origin


def public_names(namespace: Mapping[str, Any]) -> list[str]:
    """The `__all__` of a package that takes the names of its modules by `from … import *`.

    These are constants in capitals, types of functions, and the package's functions and classes.

    Args:
      namespace: the package's `globals()`.
    """
    package = namespace["__name__"] + "."

    def is_public(name, value):
        owned = str(getattr(value, "__module__", "")).startswith(package)
        return name[0] != "_" and (owned or name.isupper() or get_origin(value) is Callable)

    return sorted(name for name, value in namespace.items() if is_public(name, value))
