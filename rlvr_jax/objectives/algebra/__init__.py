"""The algebra: what a part of an objective is, and how parts make a loss.

`objective(...)` joins parts into an `Objective`. A part is a `Transform`, a `Surrogate` or an
`Aggregation`; `rlvr_jax.types.parts.part` makes them values; `Spec`, `Context` and `UpdatePlan` are
what parts are told. `summarize` gives the numbers that every objective reports. `inputs` says what
a part may ask for; it is read by the algebra itself.
"""

from rlvr_jax.objectives.algebra.core import *
from rlvr_jax.objectives.algebra.parts import *
from rlvr_jax.objectives.algebra.summary import *
from rlvr_jax.public import public_names

__all__ = public_names(globals())
