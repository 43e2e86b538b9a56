"""Training the policy to say, after its response, whether the response is right.

What it says are `verdict_logp`, log-probs of fixed tokens at the one position after the response. A
row is finished if the budget did not cut it off and it has tokens; others have no verdict.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool

from rlvr_jax.types import Rollouts

__all__ = ["finished_rows"]


def finished_rows(rollouts: Rollouts) -> Bool[Array, "B"]:
    """Rows with tokens that were not cut off."""
    return ~rollouts.truncated & jnp.any(rollouts.mask, axis=1)
