"""Reinforcement learning with verifiable rewards in JAX, with token entropy at its centre.

The public functions below are loaded when they are first used, so that `import rlvr_jax` is cheap.
Docstrings of the subpackages (`rlvr_jax.policy`, `rlvr_jax.objectives`, …) list public names.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for type checkers, in place of `__getattr__`
    from rlvr_jax import (
        analysis as analysis,
        boards as boards,
        console as console,
        diagnosis as diagnosis,
        experience as experience,
        judges as judges,
        kernels as kernels,
        methods as methods,
        objectives as objectives,
        parallel as parallel,
        pods as pods,
        policy as policy,
        rollout as rollout,
        runs as runs,
        sandbox as sandbox,
        tasks as tasks,
        tools as tools,
        training as training,
        types as types,
        verifiers as verifiers,
    )
    from rlvr_jax.analysis import pass_at_k as pass_at_k
    from rlvr_jax.kernels.token_stats import token_stats as token_stats
    from rlvr_jax.objectives import Spec as Spec, objective as objective
    from rlvr_jax.training.gradient import exact_gradient as exact_gradient
    from rlvr_jax.types import (
        Method as Method,
        Recipe as Recipe,
        Rollouts as Rollouts,
        Signals as Signals,
        TokenStats as TokenStats,
    )

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
_SUBPACKAGES = (
    "analysis",
    "boards",
    "console",
    "diagnosis",
    "experience",
    "judges",
    "kernels",
    "methods",
    "objectives",
    "parallel",
    "pods",
    "policy",
    "rollout",
    "runs",
    "sandbox",
    "server",
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
    if name in _SUBPACKAGES:
        return importlib.import_module(f"rlvr_jax.{name}")
    raise AttributeError(f"module 'rlvr_jax' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_SUBPACKAGES])
