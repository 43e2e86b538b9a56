"""Freed memory goes back to the system, where the C library would keep it."""

from __future__ import annotations

import ctypes
import sys

__all__ = ["trim_heap"]


def trim_heap() -> None:
    """Gives freed memory of this process back; does nothing where the C library is not glibc.

    It keeps freed blocks of up to 32 MiB for later ones of their size, such as the layers of a copy
    of the weights: 1.1 GB after an evaluation of SmolLM2-135M on two devices.
    """
    if sys.platform == "linux" and hasattr(library := ctypes.CDLL(None), "malloc_trim"):
        library.malloc_trim(0)
