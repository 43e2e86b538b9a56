"""Stages that take rows out of the loss."""

from rlvr_jax.experience.parts import Stage
from rlvr_jax.types.parts import part


@part
def mask_truncated() -> Stage:
    """Takes responses that the budget cut out of the loss; their rewards stay in their groups.

    Reads: truncated. Writes: mask.
    """

    def apply(batch, actor, state, turn):
        return batch.without(batch.rollouts.truncated), state, {}

    return apply
