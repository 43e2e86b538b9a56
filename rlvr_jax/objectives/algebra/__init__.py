"""The algebra: parts of an objective, and their composition to a loss.

`objective(...)` composes parts to an `Objective`. A part is a `Transform`, a `Surrogate` or an
`Aggregation`; `rlvr_jax.types.parts.part` makes them values; `Spec`, `Context` and `UpdatePlan` are
their inputs. `summarize` computes the metrics of every objective. `inputs` checks parts' reads.
"""

from rlvr_jax.objectives.algebra.core import *
from rlvr_jax.objectives.algebra.parts import *
from rlvr_jax.objectives.algebra.summary import *
from rlvr_jax.public import public_names

__all__ = public_names(globals())
