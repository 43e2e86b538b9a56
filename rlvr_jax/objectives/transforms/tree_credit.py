"""One credit for tokens that several rows have because they branched off one another."""

from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.statistics.trees import mean_of_copies, parent_rows, token_owner
from rlvr_jax.types import replace
from rlvr_jax.types.parts import part

__all__ = ["average_over_copies"]


@part(writes={"advantage"}, once=True)
def average_over_copies() -> Transform:
    """A token that several rows have gets the mean of their advantages in each of them.

    Its gradient is that of the rows' own advantages as long as they are averaged and clipped alike.

    Reads: advantage, mask, parent, branch_position. Writes: advantage. Metrics: none.
    Source: ARPO's hard advantage (the link stands in the method's card).
    """

    def apply(signals, context, state):
        rollouts, mask = context.rollouts, signals.mask
        parent = parent_rows(rollouts.parent, rollouts.rollout_id)
        owner = token_owner(parent, rollouts.branch_position, mask.shape[1])
        own = mean_of_copies(signals.advantage, mask, owner)
        return replace(signals, advantage=own), state, {}

    return apply
