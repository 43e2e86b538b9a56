"""Reinforcement learning with verifiable rewards in JAX, with token entropy at its centre.

The public functions below are loaded when they are first used, so that `import rlvr_jax` is cheap.
The rooms (`rlvr_jax.policy`, `rlvr_jax.objectives`, …) say in their docstrings what they hand out.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what checkers see in place of `__getattr__`
    from rlvr_jax import analysis as analysis
    from rlvr_jax import experience as experience
    from rlvr_jax import judges as judges
    from rlvr_jax import kernels as kernels
    from rlvr_jax import methods as methods
    from rlvr_jax import objectives as objectives
    from rlvr_jax import parallel as parallel
    from rlvr_jax import policy as policy
    from rlvr_jax import rollout as rollout
    from rlvr_jax import runs as runs
    from rlvr_jax import sandbox as sandbox
    from rlvr_jax import tasks as tasks
    from rlvr_jax import tools as tools
    from rlvr_jax import training as training
    from rlvr_jax import types as types
    from rlvr_jax import verifiers as verifiers
    from rlvr_jax.analysis import pass_at_k as pass_at_k
    from rlvr_jax.kernels.token_stats import token_stats as token_stats
    from rlvr_jax.objectives import Spec as Spec
    from rlvr_jax.objectives import objective as objective
    from rlvr_jax.training.gradient import exact_gradient as exact_gradient
    from rlvr_jax.types import Method as Method
    from rlvr_jax.types import Recipe as Recipe
    from rlvr_jax.types import Rollouts as Rollouts
    from rlvr_jax.types import Signals as Signals
    from rlvr_jax.types import TokenStats as TokenStats

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
