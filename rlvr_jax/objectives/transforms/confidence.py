"""Advantages shaped by how probable the policy found the response, or where in it a token stands.

Everything is of the policy that sampled.
"""

from jaxtyping import Array, Bool, Float

Tokens = Float[Array, "B T"]
Mask = Bool[Array, "B T"]
