"""Turns with an environment that are written as pieces, for draws that fork or cut between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rlvr_jax.experience.asks import Ask
from rlvr_jax.experience.draws.asking import Driver, Episode, environment_of
from rlvr_jax.experience.draws.trees.branching import Row, advance
from rlvr_jax.experience.draws.trees.pieces import Pieces
from rlvr_jax.experience.prompts import row_texts
from rlvr_jax.objectives import TOOL
from rlvr_jax.tasks import Task
from rlvr_jax.tools import Environment
from rlvr_jax.types import Rollouts


def lone_environment(draw: str, given: Environment | None, task: Task) -> Environment:
    """The environment that a draw was given, or else the task's, in which rows are alone.

    Args:
      draw: its name, for the error.
    Raises:
      ValueError: neither is there; a game of several players.
    """
    world = environment_of(draw, given, task)
    if getattr(world, "players", 1) > 1:
        raise ValueError(
            f"{draw}: environment must have one player, got {world.label}: a row that is forked or"
            " begins anew would leave its game"
        )
    return world


@dataclass
class TurnRow(Row):
    """A response in an environment.

    Fields:
      turn: replies that it has been told.
      asked: times that the environment was asked.
      answered: tokens up to the end of the last reply; the turn behind them is not answered yet.
      inject: tokens of the last one, which its next turn begins behind.
      spare: tokens of the budget that a reply leaves, for which it is shortened; None: one without
        room for a further token is left out.
    """

    episode: Episode | None = None
    turn: int = 0
    asked: int = 0
    answered: int = 0
    inject: Sequence[int] = ()
    spare: int | None = None

    def fork(self, sample: int) -> TurnRow:
        return replace(super().fork(sample), episode=self.episode.forked())


def draw_turn(
    pieces: Pieces,
    asks: Sequence[Ask],
    rows: Sequence[TurnRow],
    limit: int | None = None,
    until: Sequence[int] | None = None,
    behind: Sequence[int] = (),
) -> np.ndarray:
    """Writes a turn of some rows, behind what they were told; gives the numbers of the pieces.

    Args:
      asks: that the rows' groups are places of.
      limit: tokens that are drawn at most; None: up to the end.
      until: of each row the place where its response is cut if it goes on beyond; None: nowhere.
      behind: tokens that are given behind what a row was told.
    """
    kept, tips = np.array([row.cut for row in rows]), [row.tip for row in rows]
    drawn = advance(
        pieces,
        asks,
        rows,
        limit,
        until,
        inject=[[*row.inject, *behind] for row in rows],
        unanswered=[
            max(0, row.cut + len(row.inject) - row.answered) if row.tip >= 0 and not behind else 0
            for row in rows
        ],
    )
    rollouts = pieces.batch.rollouts
    length = rollouts.length[drawn]
    places = np.arange(rollouts.tokens.shape[1])[None]
    end = kept + [len(row.inject) for row in rows]
    number = np.array([row.turn for row in rows])[:, None]
    told = (places >= kept[:, None]) & (places < end[:, None])
    own = (places >= end[:, None]) & (places < length[:, None])
    # Rows that go on behind one reply share it, too: it is the first one's.
    first: dict[int, int] = {}
    owner = [first.setdefault(tip, number) for tip, number in zip(tips, drawn, strict=True)]
    pieces.source[drawn] = np.where(told, np.array(owner)[:, None], pieces.source[drawn])
    known = _own_records(rollouts)
    known["turn"][drawn] = np.where(own, 2 * number, np.where(told, 2 * number - 1, -1))
    known["origin"][drawn] = np.where(told, TOOL, known["origin"][drawn])
    pieces.batch = pieces.batch.with_rollouts(**known)
    return drawn


def _own_records(rollouts: Rollouts) -> dict[str, np.ndarray]:
    """Copies of the records that a reply changes; new ones say nothing."""
    shape, known = rollouts.tokens.shape, {}
    new = {
        "turn": np.full(shape, -1, np.int32),
        "origin": np.zeros(shape, np.int32),
        "process_reward": np.zeros(shape, rollouts.reward.dtype),
    }
    for name in (*new, "tokens", "length", "truncated"):
        array = getattr(rollouts, name)
        known[name] = new[name] if array is None else array.copy()
    return known


def unended(how: Driver, pieces: Pieces, rows: Sequence[TurnRow]) -> list[bool]:
    """Of which rows the last turn has come to a limit, and not to the end of an action."""
    rollouts = pieces.batch.rollouts
    return [
        bool(rollouts.truncated[row.tip])
        and not how.ends_action(
            pieces.batch.tokenizer, rollouts.tokens[row.tip, row.answered : row.cut].tolist()
        )
        for row in rows
    ]


def answer_turns(how: Driver, pieces: Pieces, asks: Sequence[Ask], rows: Sequence[TurnRow]) -> None:
    """Gives rows the replies to their last turns; rows without one become inactive."""
    rollouts = pieces.batch.rollouts
    budget = rollouts.tokens.shape[1]
    tips = np.array([row.tip for row in rows])
    paused = rollouts.truncated[tips]
    for row in rows:
        row.active, row.inject = False, ()
    cut_off = unended(how, pieces, rows)
    asked = [
        place
        for place, row in enumerate(rows)
        if row.turn < how.limit and not cut_off[place] and not (paused[place] and row.cut >= budget)
    ]
    # Neither what it was given nor the end of a response is a part of what it says.
    places = np.arange(budget)
    said = rollouts.origin[pieces.source[tips], places] == 0
    said &= places >= np.array([row.answered for row in rows])[:, None]
    said &= places < (rollouts.length[tips] - ~paused)[:, None]
    written = [rollouts.tokens[tips[place]][said[place]] for place in asked]
    texts = row_texts(pieces.batch.tokenizer, written)
    keys, waiting = {}, {}
    for place, text in zip(asked, texts, strict=True):
        row = rows[place]
        ask = asks[row.group]
        keys[place] = f"{ask.round}/{ask.number}/{row.sample}/{row.asked}"
        row.asked += 1
        # All rows of a prompt are asked about by one process, which has the states of forks.
        future = how.ask(keys[place], row.episode, text, how.owns(row.group))
        if future is not None:
            waiting[place] = future
    for place, reply in how.replies(keys, waiting).items():
        row, tokenizer = rows[place], pieces.batch.tokenizer
        told = how.take(reply, row.episode, rollouts, row.tip, tokenizer, row.spare)
        if told is None:
            continue
        row.active, row.inject = True, told
        if reply.text is not None:
            row.turn, row.answered = row.turn + 1, row.cut + len(told)
