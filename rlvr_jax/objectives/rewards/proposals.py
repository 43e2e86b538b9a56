"""What those earn who write problems: by how well the current policy solves them.

Rates are shares of right answers, in [0, 1].
"""

from jaxtyping import Array, Float

__all__ = []

Rate = Float[Array, "..."]
