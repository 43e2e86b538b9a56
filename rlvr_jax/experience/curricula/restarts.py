"""Rounds of a run that begin with its first weights."""

from __future__ import annotations

from rlvr_jax.experience.parts import Curriculum
from rlvr_jax.types.hyperparameters import Count
from rlvr_jax.types.parts import part

__all__ = ["restart_every"]


@part
def restart_every(steps: Count) -> Curriculum:
    """Begins every so many steps with the weights and the optimizer that the run began with.

    It leaves the asks of the part before it as they are.

    Args:
      steps: of a round, at least 1.
    Raises:
      ValueError: fewer than one step.
    """

    def propose(asks, state, turn):
        del state, turn
        return asks

    def events(state, step):
        del state
        again = step > 0 and step % steps == 0
        return frozenset({"restart", "reset"} if again else ())

    return Curriculum(propose, events=events)
