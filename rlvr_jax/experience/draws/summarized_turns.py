"""Answers written in turns with an environment, whose context the policy's summaries replace."""

from __future__ import annotations

import concurrent.futures
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rlvr_jax.experience.asks import Ask, numbered_answers
from rlvr_jax.experience.draws.asking import THREADS, Driver, Episode
from rlvr_jax.experience.draws.segments import Segment, Segments
from rlvr_jax.experience.draws.trees.pieces import Pieces
from rlvr_jax.experience.draws.trees.turn_pieces import (
    TurnRow,
    answer_turns,
    brought_by,
    draw_turn,
    lone_environment,
    unended,
)
from rlvr_jax.experience.parts import Draw
from rlvr_jax.objectives import describe
from rlvr_jax.objectives.arguments import check_count
from rlvr_jax.tools import Environment

__all__ = ["summarized_turns"]

QUARTERS = 4
"""Turns are drawn with limits in quarters of the budget: few programs, and what exceeds is cut."""


def summarized_turns(
    environment: Environment | None = None,
    limit: int = 8,
    reply_tokens: int = 512,
    most: int = 2,
    instruction: str = " Summarise. ",
    context: int | None = None,
    summary: int | None = None,
    **sampling: Any,
) -> Draw:
    """Writes each answer in turns with an environment, as `turns`, and in segments, as `summaries`.

    After each turn with its reply the segment is looked at: one of `context` tokens or more gets
    the instruction behind it, and the policy writes a summary, which ends the segment. The next one
    begins with the prompt and the summary alone, while the episode goes on: the environment knows
    what was said before. A turn may go on beyond `context`, into half of the room before the
    instruction or as far as a reply of `reply_tokens` has room behind it; one that is not at the
    end of a call there is summed up where it stands. A reply is shortened to what leaves room for
    the instruction and the summary. In the last segment, behind `most` summaries, a reply without
    room ends the answer, cut.

    Rows, traces and grades are those of `summaries`; a reply is given, as the instruction and the
    copied summary are, and `origin` says that it is a tool's. Turns are numbered through the
    answer: a summary belongs to the policy's turn behind the last reply. Where the environment
    judges, it judges the answer as a whole, with the rewards of all its segments. All prompts go on
    together, so that drawing waits for replies. A summary that makes a call ends there, and is not
    answered.

    Args:
      environment: None: that of the task (`Task.environment`).
      limit: replies of an answer at most, in all its segments together; behind the last one the
        policy goes on, and is not asked again.
      reply_tokens: of a reply at most; what is longer loses its middle.
      most, instruction, context, summary: as for `summaries`.
      sampling: settings of the sampler that are prescribed, as in `plain`.
    Writes: turn, origin, process_reward, as `turns`.
    Metrics: answers, segments, turns (of the policy, summaries included), tool_tokens, cut_replies
      (shortened or left out), lost_answers, and the sums of what the environment counts.
    Raises:
      ValueError: as `summaries`; when a run begins, a task without an environment where none is
        given, or a game of several players.
    Source: SUPO draws so (the link stands in the method's card); the limits are ours.
    """
    check_count(1, "summarized_turns", limit=limit, reply_tokens=reply_tokens)
    how = Segments(most, instruction, context, summary)
    how.check("summarized_turns")

    def init(setting):
        lone_environment("summarized_turns", environment, setting.task)
        return ()

    def apply(asks, actor, state, turn):
        budget, counts = turn.setting.response_tokens, Counter[str]()
        world = lone_environment("summarized_turns", environment, turn.setting.task)
        until, size, asked = how.sizes("summarized_turns", actor, budget)
        room = budget - len(asked) - size
        rows = [
            TurnRow(number, sample, episode=Episode(ask.prompt))
            for number, (ask, sample) in enumerate(numbered_answers(asks))
        ]
        with concurrent.futures.ThreadPoolExecutor(THREADS) as threads:
            driver = Driver(actor, world, turn, limit, reply_tokens, sampling, threads)
            pieces = Pieces(actor, turn.key, driver.sampling)

            def write(part):
                own = _begun(rows, part, budget - room)
                ends = max((until + room + 1) // 2, room - reply_tokens)
                ends = np.where(part.whole, budget, ends)
                ends = np.maximum(ends, part.begun + 1)
                full = np.where(part.whole, budget + 1, until)
                going, on = np.arange(len(own)), np.zeros(len(own), bool)
                while len(going):
                    some = [own[place] for place in going]
                    _write_turn(pieces, part.asks, some, part.begun[going], ends[going], budget)
                    answer_turns(driver, pieces, part.asks, some, counts)
                    told = np.array([row.active for row in some])
                    beyond = [row.cut + len(row.inject) for row in some] >= full[going]
                    on[going] = np.where(told, beyond, unended(driver, pieces, some))
                    going = going[told & ~beyond]
                return np.array([row.tip for row in own]), on & ~part.whole

            def sum_up(part, on, tips):
                told = [rows[number] for number in part.rows[on]]
                return draw_turn(pieces, part.asks, told, size, behind=asked)

            batch = how.grow(asks, actor, turn, pieces, room, write, sum_up)
        trace = batch.rollouts.trace
        rewards = np.bincount(trace, batch.rollouts.process_reward.sum(axis=1), len(rows))
        if grades := brought_by(driver, rows, rewards):
            batch = replace(batch, brought=[grades[number] for number in trace])
        counts.update(answers=len(rows), segments=len(batch), turns=len(pieces))
        counts["lost_answers"] += sum(row.lost for row in rows)
        return batch, state, {name: float(value) for name, value in counts.items()}

    label = "task" if environment is None else environment.label
    named = {"environment": label, "limit": limit, "reply_tokens": reply_tokens, **vars(how)}
    return Draw(
        apply,
        describe("summarized_turns", **named, **sampling),
        init,
        sampling=sampling,
        of_policy=True,
        most=float(most + 1),
        splits=most > 0,
        environment=environment,
        gives=frozenset({"turn", "process_reward"}),
    )


def _begun(rows: Sequence[TurnRow], part: Segment, spare: int) -> list[TurnRow]:
    """The rows of a segment, which begin anew; their episodes go on.

    Args:
      spare: tokens that a reply leaves for the instruction and the summary.
    """
    own = [rows[number] for number in part.rows]
    for row, sample, whole in zip(own, part.sample, part.whole, strict=True):
        row.tip, row.cut, row.inject, row.sample = -1, 0, (), int(sample)
        row.answered = 0
        row.spare = None if whole else spare
    return own


def _write_turn(
    pieces: Pieces,
    asks: Sequence[Ask],
    rows: Sequence[TurnRow],
    begun: np.ndarray,
    ends: np.ndarray,
    budget: int,
) -> None:
    """Writes a turn of some rows, which are cut at `ends` [n].

    Args:
      begun: int [n], tokens that their segments begin with.
    """
    written = [row.cut + len(row.inject) for row in rows]
    left = ends - np.where([row.tip < 0 for row in rows], begun, written)
    quarter = -(-budget // QUARTERS)
    draw_turn(pieces, asks, rows, -(-int(left.max()) // quarter) * quarter, ends)
