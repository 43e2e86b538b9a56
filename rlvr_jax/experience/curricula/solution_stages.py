"""Prompts that begin near the end of a worked solution, and later further from it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rlvr_jax.experience.parts import Curriculum
from rlvr_jax.experience.views import begin_with, begin_with_most
from rlvr_jax.types.hyperparameters import NonNegativeInt
from rlvr_jax.types.parts import part

__all__ = ["begin_near_the_end", "given_steps"]


def given_steps(steps: np.ndarray, stage: np.ndarray) -> np.ndarray:
    """How many of a solution's steps are given in a stage: all but one in stage 1, none in stage M.

    Args:
      steps: M, of each solution.
      stage: from 1; those behind M give nothing.
    """
    return np.maximum(np.asarray(steps) - stage, 0)


@part
def begin_near_the_end(per_stage: NonNegativeInt = 0) -> Curriculum:
    """Lets responses begin with the first steps of the worked solution, stage by stage.

    In stage m all but the last m steps are given; they are context and not learned from. A solution
    of M steps has M stages, the last from the bare prompt.

    Args:
      per_stage: steps of the run in each stage; 0: all stages at once, each ask at a random one.
    Reads: Prompt.solution. Metrics: given_share (of the solutions, mean over the asks).
    Raises:
      ValueError: a negative number; when a run is set up, a prompt without a solution.
    Source: R³, https://github.com/WooooDyy/LLM-Reverse-Curriculum-RL.
    """

    def propose(asks, state, turn):
        del state
        steps = np.array([len(ask.prompt.solution) for ask in asks])
        if per_stage:
            stage = np.full(len(asks), 1 + turn.step // per_stage)
        else:
            random = turn.random().spawn(turn.round + 1)[-1]
            stage = 1 + random.integers(np.maximum(steps, 1))
        shares = given_steps(steps, stage) / np.maximum(steps, 1)
        return [
            replace(ask, view=begin_with(share, whole_steps=True))
            for ask, share in zip(asks, shares.tolist(), strict=True)
        ]

    def observe(state, turn, seen, learned):
        del turn, seen
        asked = [learned.asks[rows[0]].view.fraction for rows in learned.groups]
        return state, {"given_share": float(np.mean(asked))}

    needs, views = frozenset({"solution"}), (begin_with_most(),)
    return Curriculum(propose, observe=observe, reads=needs, views=views)
