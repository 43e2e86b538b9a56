"""Stages that remove rows from the loss."""

from rlvr_jax.experience.parts import Stage
from rlvr_jax.types.parts import part


@part
def mask_truncated() -> Stage:
    """Removes truncated responses from the loss; their rewards stay in their groups."""

    def apply(batch, actor, state, turn):
        return batch.without(batch.rollouts.truncated), state, {}

    return apply
