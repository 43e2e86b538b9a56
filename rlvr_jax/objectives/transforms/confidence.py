"""Advantages shaped by how probable the policy found the response, or where in it a token stands.

Everything is of the policy that sampled.
"""

from jaxtyping import Array, Bool, Float

__all__ = []

Tokens = Float[Array, "B T"]
Mask = Bool[Array, "B T"]
