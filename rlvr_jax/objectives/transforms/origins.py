"""Batches with rows that another policy wrote: who is compared, trained on, and held on to."""

from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.types import replace
from rlvr_jax.types.parts import part

__all__ = ["drop_off_policy"]


@part(reads={"off_policy"}, writes={"mask"})
def drop_off_policy() -> Transform:
    """Takes the rows of another policy out of the loss and out of its denominators."""

    def apply(signals, context, state):
        mask = signals.mask & ~context.rollouts.off_policy[:, None]
        return replace(signals, mask=mask), state, {}

    return apply
