"""The algebra: parts of an objective, and their composition to a loss.

`objective(...)` composes parts to an `Objective`. A part is a `Transform`, a `Surrogate` or an
`Aggregation`; `rlvr_jax.types.parts.part` lets parts compare by value. Inputs of parts are `Spec`,
`Context` and `UpdatePlan`. `summarize` computes the metrics that every objective reports.
`measured_against` adds the distance from another objective.
"""

from rlvr_jax.objectives.algebra.core import *
from rlvr_jax.objectives.algebra.parts import *
from rlvr_jax.objectives.algebra.slopes import *
from rlvr_jax.objectives.algebra.summary import *
from rlvr_jax.public import public_names

__all__ = public_names(globals())
