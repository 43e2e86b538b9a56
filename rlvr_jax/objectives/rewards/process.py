"""Process rewards: what steps or tokens are worth, as rewards of tokens.

Scores of steps are tables (see `statistics.steps`): `steps_of` reads them from `process_reward`,
`spread` puts them on the last tokens of their steps, and between the two they are refined. What a
score does to the tokens before it is the matter of an advantage (`process_to_go`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rlvr_jax.objectives.statistics.implicit_rewards import step_ends
from rlvr_jax.objectives.statistics.steps import (
    Steps,
    at_tokens,
)
from rlvr_jax.types import Rollouts
from rlvr_jax.types.parts import Part

__all__ = ["ProcessReward", "spread"]

Table = Float[Array, "B T"]


@dataclass(frozen=True, eq=False, repr=False)
class ProcessReward(Part):
    """What each token is paid on its way.

    Fields:
      of: (rollouts, mask) -> [B, T], read on the mask only.
      reads: records of the rollouts that it reads.
    """

    of: Callable[[Rollouts, Bool[Array, "B T"]], Float[Array, "B T"]]
    reads: frozenset[str] = frozenset()


def spread(scores: Table, steps: Steps) -> Float[Array, "B T"]:
    """The score of each step on its last token, 0 elsewhere."""
    return jnp.where(step_ends(steps), at_tokens(scores, steps), 0)
