"""Answers that are written in chunks, each in a context of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from rlvr_jax.experience.asks import Ask, numbered_answers
from rlvr_jax.experience.batch import GIVEN, Batch, concatenate, given_tokens
from rlvr_jax.experience.parts import Draw
from rlvr_jax.objectives.arguments import check_count
from rlvr_jax.types.hyperparameters import Count, NonNegativeInt
from rlvr_jax.types.parts import part

__all__ = ["carried_over", "chunks"]


def carried_over(tokens: Sequence[int], carry: int, head: int) -> list[int]:
    """The first tokens of a text and its last ones: so many of them together.

    Args:
      tokens: at least `carry` of them.
      carry: number that is kept.
      head: how many of them are from the beginning, at most `carry`.
    """
    return [*tokens[:head], *tokens[len(tokens) - (carry - head) :]]


@part
def chunks(most: Count, head: NonNegativeInt, carry: int | None = None, **sampling: Any) -> Draw:
    """Writes each answer in chunks of bounded context; a short carry-over is all that goes on.

    The first chunk is a response of the run's budget C (`response_tokens`). Where it does not end,
    its first `head` tokens and its last ones, m in all, stand behind the prompt as the beginning of
    the next chunk, which goes on for up to C - m further tokens; and so on, until an answer ends or
    has `most` chunks. A chunk is a row: prompt, carry-over (given, not trained), new tokens; so a
    token is trained in the very context that it was drawn in. The rows of an answer have one
    `trace`, stand in order, and are graded by the last of them, whose text is carry-over and new
    tokens. `truncated` says of all of them whether the answer as a whole was cut.

    A group has all rows of all answers to its prompt, so batches differ in their number of rows.

    Args:
      most: chunks of an answer at most (I), at least 1.
      head: tokens from the beginning of the answer that are always carried over; at most half the
        carry-over.
      carry: tokens that are carried over (m), below the run's budget; None: half of it.
      sampling: settings of the sampler that are prescribed, as in `plain`.
    Metrics: answers, chunks (numbers, so that their quotient is the mean).
    Raises:
      ValueError: a number that is no count; when a run begins, a carry that leaves no room.
    Source: Aghajohari et al. 2025, https://arxiv.org/abs/2510.06557.
    """
    if carry is not None:
        check_count(1, "chunks", carry=carry)

    def init(setting):
        budget = setting.response_tokens
        least = 2 if carry is None else carry + 1
        if budget < least:
            raise ValueError(
                f"chunks: response_tokens must be at least {least} for a carry of {carry}, got"
                f" {budget}"
            )
        return ()

    def apply(asks, actor, state, turn):
        kept = turn.setting.response_tokens // 2 if carry is None else carry
        parts = [actor.draw(asks, turn.key)]
        answers = numbered_answers(asks)
        rows = np.arange(len(answers))
        traces = [rows]
        for chunk in range(1, most):
            going = np.flatnonzero(parts[-1].rollouts.truncated)
            if not len(going):
                break
            rows = rows[going]
            again = [
                _going_on(parts[-1], row, *answers[answer], kept, head)
                for row, answer in zip(going, rows, strict=True)
            ]
            drawn = actor.draw(again, jax.random.fold_in(turn.key, chunk))
            # A trained opening was trained in the first chunk.
            given = drawn.rollouts.origin == GIVEN
            parts.append(drawn.with_rollouts(mask=drawn.rollouts.mask & ~given))
            traces.append(rows)
        told = {"answers": float(len(answers)), "chunks": float(sum(map(len, parts)))}
        return by_trace(parts, np.concatenate(traces), asks), state, told

    return Draw(apply, init, sampling=sampling, of_policy=True, most=float(most), splits=most > 1)


def _going_on(batch: Batch, row: int, ask: Ask, sample: int, carry: int, head: int) -> Ask:
    """What asks for the next chunk of an answer."""
    rollouts = batch.rollouts
    tokens = rollouts.tokens[row, : rollouts.length[row]].tolist()
    # What the view opens a response with comes again by itself, and stays whole.
    opening = int(given_tokens(rollouts)[row]) - len(batch.asks[row].given)
    kept = carried_over(tokens, carry, max(min(head, carry // 2), opening))
    return replace(ask, samples=1, first_sample=sample, given=kept[opening:])


def by_trace(parts: Sequence[Batch], traces: np.ndarray, asks: Sequence[Ask]) -> Batch:
    """The chunks of each answer after one another, answers in the order of the asks.

    Args:
      traces: number of the answer of each row of the parts.
    """
    order = np.argsort(traces, kind="stable")
    trace = traces[order].astype(np.int32)
    group_of = np.repeat(np.arange(len(asks), dtype=np.int32), [ask.samples for ask in asks])
    whole = concatenate(parts).take(order)
    whole = whole.with_rollouts(trace=trace, group=group_of[trace]).renumbered()
    truncated = whole.rollouts.truncated[whole.last_of_trace]
    return replace(
        whole.with_rollouts(truncated=truncated),
        asks=[asks[group] for group in group_of[trace]],
        sample_seconds=sum(part.sample_seconds for part in parts),
    )
