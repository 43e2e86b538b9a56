"""Answers in segments, between which the policy sums up: what their draws have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rlvr_jax.experience.asks import Ask, numbered_answers
from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.draws.chunks import by_trace
from rlvr_jax.experience.draws.trees.pieces import Pieces
from rlvr_jax.experience.parts import Actor, Turn
from rlvr_jax.objectives.arguments import check_count

__all__ = ["Segment", "Segments"]

SEGMENT = 1 << 20
"""Apart from the samples of a prompt, of which there are fewer."""


@dataclass(frozen=True)
class Segment:
    """One segment of the answers that go on.

    Fields:
      rows: int [n], numbers of the answers.
      asks: of every answer, going on or not, with what this segment begins with.
      sample: int [n], numbers of the samples: a segment draws other numbers than the one before it
        at the same places.
      begun: int [n], tokens that the segment begins with.
      whole: bool [n], what is written to its end: there is no room for a summary, or none is left.
    """

    rows: np.ndarray
    asks: Sequence[Ask]
    sample: np.ndarray
    begun: np.ndarray
    whole: np.ndarray


@dataclass(frozen=True)
class Segments:
    """How answers are cut into segments; the fields are arguments of `summaries`."""

    most: int
    instruction: str
    context: int | None
    summary: int | None

    def check(self, draw: str) -> None:
        """Refuses numbers that are no counts.

        Args:
          draw: whose arguments they are, for the error.
        """
        check_count(0, draw, most=self.most)
        given = {"context": self.context, "summary": self.summary}
        check_count(1, draw, **{name: value for name, value in given.items() if value is not None})

    def sizes(self, draw: str, actor: Actor, budget: int) -> tuple[int, int, list[int]]:
        """L, the tokens of a summary at most, and those of the instruction.

        Raises:
          ValueError: L that leaves no room for an instruction and a summary, or is no longer than a
            summary.
        """
        size = max(budget // 4, 1) if self.summary is None else self.summary
        until = budget // 2 if self.context is None else self.context
        asked = list(actor.encode(self.instruction))
        if self.most and not size < until <= budget - len(asked) - size:
            raise ValueError(
                f"{draw}: context must be above {size}, the tokens of a summary, and at most"
                f" {budget - len(asked) - size}, which leaves room for one, got {until}"
            )
        return until, size, asked

    def grow(
        self,
        asks: Sequence[Ask],
        actor: Actor,
        turn: Turn,
        pieces: Pieces,
        room: int,
        write: Callable[[Segment], tuple[np.ndarray, np.ndarray]],
        sum_up: Callable[[Segment, np.ndarray, np.ndarray], np.ndarray],
    ) -> Batch:
        """The segments of all answers, as rows.

        Args:
          room: tokens of a segment at most, behind which there is room to sum it up.
          write: writes a segment; gives the pieces that it ends with, and which are summed up.
          sum_up: (segment, bool [n], pieces of these) -> the pieces behind them with a summary.
        """
        answers, task = numbered_answers(asks), turn.setting.task
        going = np.arange(len(answers))
        opening = [len(ask.view.show(ask.prompt, task).begun(actor.encode)) for ask, _ in answers]
        own = [ask for ask, _ in answers]
        parts, traces = [], []
        for segment in range(self.most + 1):
            begun = np.array([opening[row] + len(own[row].given) for row in going])
            part = Segment(
                going,
                own,
                np.array([answers[row][1] + segment * SEGMENT for row in going]),
                begun,
                (begun >= room) | (segment == self.most),
            )
            tips, on = write(part)
            if on.any():
                tips[on] = sum_up(part, on, tips[on])
            parts.append(pieces.responses(tips, [replace(own[row], samples=1) for row in going]))
            traces.append(going)
            for row, tip in zip(going[on], tips[on], strict=True):
                own[row] = replace(own[row], given=_summary(pieces, tip, actor.stop_token()))
            going = going[on]
            if not len(going):
                break
        batch = by_trace(parts, np.concatenate(traces), asks)
        return replace(batch, sample_seconds=pieces.batch.sample_seconds)


def _summary(pieces: Pieces, tip: int, stop_token: int) -> list[int]:
    """The tokens of a summary, without the one that ended it."""
    rollouts = pieces.batch.rollouts
    tokens = rollouts.tokens[tip][pieces.new_tokens(np.array([tip]))[0]].tolist()
    return [token for token in tokens if token != stop_token]
