"""Rounds of a run that begin with its first weights."""

from __future__ import annotations

from rlvr_jax.experience.parts import Curriculum
from rlvr_jax.objectives.arguments import check_count

__all__ = ["restart_every"]


def restart_every(steps: int) -> Curriculum:
    """Begins every so many steps with the weights and the optimizer that the run began with.

    It leaves the asks of the part before it as they are.

    Args:
      steps: of a round, at least 1.
    Raises:
      ValueError: fewer than one step.
    """
    check_count(1, "restart_every", steps=steps)

    def propose(asks, state, turn):
        del state, turn
        return asks

    def events(state, step):
        del state
        again = step > 0 and step % steps == 0
        return frozenset({"restart", "reset"} if again else ())

    return Curriculum(propose, f"restart_every({steps})", events=events)
