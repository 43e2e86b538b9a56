"""Reinforcement learning with verifiable rewards in JAX, with token entropy at its centre.

The public functions below are loaded when they are first used, so that `import rlvr_jax` is cheap.
The rooms (`rlvr_jax.policy`, `rlvr_jax.objectives`, …) say in their docstrings what they hand out.
"""

import importlib
from typing import Any

__version__ = "0.1.0"

_PUBLIC = {
    "Method": "types",
    "Recipe": "types",
    "Rollouts": "types",
    "Signals": "types",
    "Spec": "objectives",
    "TokenStats": "types",
    "exact_gradient": "training.gradient",
    "objective": "objectives",
    "pass_at_k": "analysis",
    "token_stats": "kernels.token_stats",
}
_ROOMS = (
    "analysis",
    "experience",
    "judges",
    "kernels",
    "methods",
    "objectives",
    "parallel",
    "policy",
    "rollout",
    "runs",
    "sandbox",
    "tasks",
    "tools",
    "training",
    "types",
    "verifiers",
)

__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(importlib.import_module(f"rlvr_jax.{_PUBLIC[name]}"), name)
    if name in _ROOMS:
        return importlib.import_module(f"rlvr_jax.{name}")
    raise AttributeError(f"module 'rlvr_jax' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_ROOMS])
