"""Freed memory goes back to the system, where the C library would keep it."""

from __future__ import annotations

import ctypes
import sys

__all__ = ["trim_heap"]


def trim_heap() -> None:
    """Gives freed memory of this process back; does nothing where the C library is not glibc.

    It keeps blocks of up to 32 MiB that were freed for later ones of their size: the layers of a
    copy of the weights, which the arrays of the next update do not fit into.
    """
    if sys.platform == "linux" and hasattr(library := ctypes.CDLL(None), "malloc_trim"):
        library.malloc_trim(0)
