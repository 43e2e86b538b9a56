"""Answers whose context is replaced by the policy's own summaries."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlvr_jax.experience.draws.segments import Segment, Segments
from rlvr_jax.experience.draws.trees.pieces import Pieces
from rlvr_jax.experience.parts import Draw
from rlvr_jax.types.parts import part

__all__ = ["summaries"]


@part
def summaries(
    most: int = 2,
    instruction: str = " Summarise. ",
    context: int | None = None,
    summary: int | None = None,
    **sampling: Any,
) -> Draw:
    """Writes each answer in segments; between them the policy sums up what it has done.

    A segment that has not ended after `context` tokens gets the instruction behind it, and the
    policy writes a summary of at most `summary` tokens: that ends the segment. The next one has the
    summary behind the prompt, and so on; the last one, behind `most` summaries, has the run's whole
    budget. A segment is a row that is trained in the context in which it was drawn: the policy's
    tokens and its summary; the instruction and the copied summary are given. The rows of an answer
    have one `trace`, stand in order, and are graded by the last of them; `truncated` says of all of
    them whether the answer as a whole was cut.

    Args:
      most: summaries of an answer at most (S).
      instruction: text that asks for one.
      context: tokens of a segment before it (L), the copied summary included; None: half the run's
        budget.
      summary: tokens of a summary at most; None: a quarter of the budget.
      sampling: settings of the sampler that are prescribed, as in `plain`.
    Metrics: answers, segments (numbers, so that their quotient is the mean).
    Raises:
      ValueError: a number that is no count; when it draws, a context that leaves no room for an
        instruction and a summary, or is no longer than a summary.
    Source: SUPO draws so (the link stands in the method's card); L and S are ours.
    """
    how = Segments(most, instruction, context, summary)
    how.check("summaries")

    def apply(asks, actor, state, turn):
        budget = turn.setting.response_tokens
        until, size, asked = how.sizes("summaries", actor, budget)
        pieces = Pieces(actor, turn.key)

        def write(part):
            tips = _written(
                pieces, part, np.where(part.whole, 0, np.maximum(until - part.begun, 1))
            )
            return tips, ~part.whole & pieces.goes_on(tips)

        def sum_up(part, on, tips):
            cut = pieces.batch.rollouts.length[tips]
            told = [part.asks[row] for row in part.rows[on]]
            return pieces.draw(told, part.sample[on], tips, cut, size, inject=[asked] * len(told))

        room = budget - len(asked) - size
        batch = how.grow(asks, actor, turn, pieces, room, write, sum_up)
        answers = sum(ask.samples for ask in asks)
        return batch, state, {"answers": float(answers), "segments": float(len(batch))}

    return Draw(apply, sampling=sampling, of_policy=True, most=float(most + 1), splits=most > 0)


def _written(pieces: Pieces, part: Segment, limits: np.ndarray) -> np.ndarray:
    """The first piece of each segment, of so many tokens at most; 0: up to the end."""
    tips = np.empty(len(part.rows), int)
    # Copied summaries differ in length: one call for each room.
    for room in np.unique(limits):
        at = np.flatnonzero(limits == room)
        none, nothing = np.full(len(at), -1), np.zeros(len(at), int)
        own = [part.asks[row] for row in part.rows[at]]
        tips[at] = pieces.draw(own, part.sample[at], none, nothing, int(room) or None)
    return tips
