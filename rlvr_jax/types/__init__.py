"""The data that flows between the subpackages: rollouts, token statistics, signals, recipes.

Shapes use the letters of the whole library: B rollouts, T response tokens, P prompt tokens.
Every class is a frozen dataclass; the first three are pytrees, so that they pass through jit, vmap
and sharding as they are.
"""

from dataclasses import replace

from rlvr_jax.types.criteria import Criterion
from rlvr_jax.types.fields import Ids, Mask, RowMask, Rows, Values
from rlvr_jax.types.parts import Function, Part, part
from rlvr_jax.types.passing import arguments_of
from rlvr_jax.types.recipes import LOSS_ON_BRACKETS, Method, Recipe, Shown
from rlvr_jax.types.records import RECORDS, Record, declare
from rlvr_jax.types.rollouts import Rollouts, is_correct
from rlvr_jax.types.signals import Signals
from rlvr_jax.types.token_stats import STATISTICS, Statistic, TokenStats, statistic

__all__ = [
    "LOSS_ON_BRACKETS",
    "RECORDS",
    "STATISTICS",
    "Criterion",
    "Function",
    "Ids",
    "Mask",
    "Method",
    "Part",
    "Recipe",
    "Record",
    "Rollouts",
    "RowMask",
    "Rows",
    "Shown",
    "Signals",
    "Statistic",
    "TokenStats",
    "Values",
    "arguments_of",
    "declare",
    "is_correct",
    "part",
    "replace",
    "statistic",
]
