"""Answers whose context is replaced by the policy's own summaries."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from rlvr_jax.experience.draws.chunks import by_trace, numbered_answers
from rlvr_jax.experience.draws.trees.pieces import Pieces
from rlvr_jax.experience.parts import Draw
from rlvr_jax.objectives import describe
from rlvr_jax.objectives.arguments import check_count

__all__ = ["summaries"]


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
    check_count(0, "summaries", most=most)
    if context is not None:
        check_count(1, "summaries", context=context)
    if summary is not None:
        check_count(1, "summaries", summary=summary)

    def apply(asks, actor, state, turn):
        budget = turn.setting.response_tokens
        size = max(budget // 4, 1) if summary is None else summary
        until = budget // 2 if context is None else context
        asked = list(actor.encode(instruction))
        if most and not size < until <= budget - len(asked) - size:
            raise ValueError(
                f"summaries: context must be above {size}, the tokens of a summary, and at most"
                f" {budget - len(asked) - size}, which leaves room for one, got {until}"
            )
        pieces, answers = Pieces(actor, turn.key), numbered_answers(asks)
        going, task = np.arange(len(answers)), turn.setting.task
        opening = [len(ask.view.show(ask.prompt, task).begun(actor.encode)) for ask, _ in answers]
        copied: list[list[int]] = [list(ask.given) for ask, _ in answers]
        parts, traces = [], []
        for segment in range(most + 1):
            last = segment == most
            own = [replace(answers[row][0], given=copied[row]) for row in going]
            # A segment draws other numbers than the one before it at the same places.
            sample = [answers[row][1] + segment * SEGMENT for row in going]
            none = np.full(len(going), -1)
            begun = np.array([opening[row] + len(copied[row]) for row in going])
            # What begins so late that no summary has room is written to its end.
            whole = last | (np.maximum(until, begun + 1) + len(asked) + size > budget)
            limits = np.where(whole, 0, np.maximum(until - begun, 1))
            tips = _written(pieces, own, sample, none, limits)
            on = ~whole & pieces.goes_on(tips)
            if on.any():
                cut = pieces.batch.rollouts.length[tips[on]]
                told = [ask for ask, one in zip(own, on, strict=True) if one]
                numbers = [number for number, one in zip(sample, on, strict=True) if one]
                instructed = [asked] * len(told)
                tips[on] = pieces.draw(told, numbers, tips[on], cut, size, inject=instructed)
            one_each = [replace(ask, samples=1) for ask in own]
            parts.append(pieces.responses(tips, one_each))
            traces.append(going)
            for row, tip in zip(going[on], tips[on], strict=True):
                copied[row] = _summary(pieces, tip, actor.stop_token())
            going = going[on]
            if not len(going):
                break
        told = {"answers": float(len(answers)), "segments": float(sum(map(len, parts)))}
        seconds = pieces.batch.sample_seconds
        batch = by_trace(parts, np.concatenate(traces), asks)
        return replace(batch, sample_seconds=seconds), state, told

    named = {"most": most, "instruction": instruction, "context": context, "summary": summary}
    return Draw(
        apply,
        describe("summaries", **named, **sampling),
        sampling=sampling,
        of_policy=True,
        most=float(most + 1),
        splits=most > 0,
    )


SEGMENT = 1 << 20
"""Apart from the samples of a prompt, of which there are fewer."""


def _written(pieces, asks, sample, none, limits) -> np.ndarray:
    """The first piece of each segment, of so many tokens at most; 0: up to the end."""
    nothing, tips = np.zeros(len(asks), int), np.empty(len(asks), int)
    # Copied summaries differ in length: one call for each room.
    for room in np.unique(limits):
        rows = np.flatnonzero(limits == room)
        some = [asks[row] for row in rows]
        tips[rows] = pieces.draw(
            some, [sample[row] for row in rows], none[rows], nothing[rows], int(room) or None
        )
    return tips


def _summary(pieces: Pieces, tip: int, stop_token: int) -> list[int]:
    """The tokens of a summary, without the one that ended it."""
    rollouts = pieces.batch.rollouts
    tokens = rollouts.tokens[tip][pieces.new_tokens(np.array([tip]))[0]].tolist()
    return [token for token in tokens if token != stop_token]
