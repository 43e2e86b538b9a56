"""Advantages that differ from step to step, by how sure the policy was there."""

from jaxtyping import Array, Float

from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.statistics.scopes import Scope, within_batch, z_score
from rlvr_jax.types import replace
from rlvr_jax.types.hyperparameters import Positive
from rlvr_jax.types.parts import part

__all__ = ["standardize_advantage"]

Table = Float[Array, "B T"]


@part(writes={"advantage"}, once=True)
def standardize_advantage(
    epsilon: Positive, scope: Scope = within_batch, ddof: int = 1
) -> Transform:
    """A' = (A - mean) / (std + ε) over the tokens that are compared.

    Args:
      epsilon: ε, positive, outside the root.
      scope: which tokens are compared.
      ddof: the sum of squares is divided by n - ddof.
    """

    def apply(signals, context, state):
        sets = scope(context.rollouts)
        scaled = z_score(signals.advantage, signals.mask, sets, ddof=ddof, epsilon=epsilon)
        return replace(signals, advantage=scaled), state, {}

    return apply
