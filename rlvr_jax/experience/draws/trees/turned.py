"""Responses that branch where an environment answers, after turns of more entropy."""

from __future__ import annotations

import concurrent.futures
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rlvr_jax.experience.asks import Ask
from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.draws.asking import (
    THREADS,
    Driver,
    Episode,
    environment_of,
)
from rlvr_jax.experience.draws.trees.branching import Branches, Row
from rlvr_jax.experience.draws.trees.pieces import Pieces
from rlvr_jax.experience.draws.turns import turns
from rlvr_jax.experience.parts import Draw
from rlvr_jax.objectives import TOOL, describe
from rlvr_jax.tools import Environment, Reply
from rlvr_jax.types import Rollouts

__all__ = ["branch_turns"]


@dataclass
class _Told(Row):
    """A response in an environment.

    Fields:
      turn: replies that it has been told.
      inject: tokens of the last one, which its next turn begins behind.
      outcome, paid, lost: as the replies said, see `Driver.grades`.
    """

    episode: Episode | None = None
    turn: int = 0
    inject: Sequence[int] = ()
    outcome: float = np.nan
    paid: bool = False
    lost: bool = False

    def fork(self, sample: int) -> _Told:
        return replace(super().fork(sample), episode=self.episode.forked())


def branch_turns(
    environment: Environment | None = None,
    limit: int = 8,
    reply_tokens: int = 512,
    weight: float = 0.2,
    base: float = 0.5,
    penalty: float = 0.0,
    share: float = 0.5,
    sensitivity: float | None = None,
    top: int = 10,
    window: int = 20,
) -> Draw:
    """Writes responses in turns with an environment, and forks one behind a reply where the turn
    before it was less sure than the first one.

    Rows are written and told as by `turns`, and forked as by `branch_rounds`, a round being a turn
    of the policy: after each of a row's turns but the first that is answered. A fork copies the
    context, the reply that both go on behind, and what the environment knows of the episode; it
    has random numbers of its own and is answered for itself from then on. Shared turns are trained
    in every row that has them, replies in none. All prompts go on together, so that drawing waits
    for replies.

    Evaluations are drawn by `turns`: their responses are samples of the policy, without branches.

    Args:
      environment, limit, reply_tokens: as for `turns`.
      weight, base, penalty, share, sensitivity, top, window: as for `branch_rounds`.
    Writes: turn, origin, process_reward, as `turns`.
    Metrics: those of `branch_rounds` with `turns` (that were drawn) in the place of rounds;
      answers, tool_tokens (each reply once, however many rows go on behind it), cut_replies,
      lost_answers, and the sums of what the environment counts, as `turns`.
    Raises:
      ValueError: as `turns` and `branch_rounds`; when a run begins, a game of several players.
    Source: ARPO and AEPO draw so (the links stand in the methods' cards).
    """
    whole = turns(environment, limit, reply_tokens)
    branches = Branches(weight, base, penalty, share, sensitivity, top, window)
    branches.check("branch_turns")

    def world_of(setting):
        world = environment_of("branch_turns", environment, setting.task)
        if getattr(world, "players", 1) > 1:
            raise ValueError(
                f"branch_turns: environment must have one player, got {world.label}: a row that"
                " branches would leave its game"
            )
        return world

    def init(setting):
        branches.check_vocabulary("branch_turns", setting)
        world_of(setting)
        return ()

    def apply(asks, actor, state, turn):
        vocabulary, counts = turn.setting.vocabulary, Counter[str]()
        with concurrent.futures.ThreadPoolExecutor(THREADS) as threads:
            world = world_of(turn.setting)
            how = Driver(actor, world, turn, limit, reply_tokens, {"record_top": top}, threads)
            pieces = Pieces(actor, turn.key, how.sampling)

            def make(group, sample):
                return _Told(group, sample, episode=Episode(asks[group].prompt))

            def write(rows):
                drawn = _next_turn(pieces, asks, rows)
                entropies = branches.entropies(pieces, drawn, vocabulary)
                _answer(how, pieces, asks, rows, counts)
                return entropies

            rows = branches.grow(asks, pieces, turn.random(), vocabulary, make, write)
        batch = pieces.responses([row.tip for row in rows], asks)
        batch = replace(batch, brought=_brought(how, rows, batch))
        forked = sum(row.forked for row in rows)
        counts.update(answers=len(rows), turns=len(pieces))
        counts.update(forked_rows=forked, begun_rows=len(rows) - forked)
        counts["lost_answers"] += sum(row.lost for row in rows)
        return batch, state, {name: float(value) for name, value in counts.items()}

    label = "task" if environment is None else environment.label
    named = {"environment": label, "limit": limit, "reply_tokens": reply_tokens, **vars(branches)}
    return replace(
        whole, apply=apply, label=describe("branch_turns", **named), init=init, evaluation=whole
    )


def _next_turn(pieces: Pieces, asks: Sequence[Ask], rows: Sequence[_Told]) -> np.ndarray:
    """Writes a turn of some rows, behind what they were told; gives the numbers of the pieces."""
    kept = np.array([row.cut for row in rows])
    drawn = pieces.draw(
        [asks[row.group] for row in rows],
        [row.sample for row in rows],
        [row.tip for row in rows],
        kept,
        inject=[row.inject for row in rows],
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
    owner = [first.setdefault(row.tip, number) for row, number in zip(rows, drawn, strict=True)]
    pieces.source[drawn] = np.where(told, np.array(owner)[:, None], pieces.source[drawn])
    known = _own_records(rollouts)
    known["turn"][drawn] = np.where(own, 2 * number, np.where(told, 2 * number - 1, -1))
    known["origin"][drawn] = np.where(told, TOOL, known["origin"][drawn])
    pieces.batch = pieces.batch.with_rollouts(**known)
    for row, tip, tokens in zip(rows, drawn, length, strict=True):
        row.tip, row.cut = int(tip), int(tokens)
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


def _answer(
    how: Driver, pieces: Pieces, asks: Sequence[Ask], rows: Sequence[_Told], counts: Counter[str]
) -> None:
    """Tells rows what the environment says to their last turns; those without a reply to go on
    behind are over."""
    rollouts = pieces.batch.rollouts
    budget = rollouts.tokens.shape[1]
    tips = np.array([row.tip for row in rows])
    paused = rollouts.truncated[tips]
    for row in rows:
        row.active, row.inject = False, ()
    asked = [
        place
        for place, row in enumerate(rows)
        if row.turn < how.limit and not (paused[place] and row.cut >= budget)
    ]
    # Neither what it was given nor the end of a response is a part of what it says.
    said = (pieces.source[tips] == tips[:, None]) & (rollouts.origin[tips] == 0)
    said &= np.arange(budget) < (rollouts.length[tips] - ~paused)[:, None]
    texts = pieces.batch.tokenizer.batch_decode(
        [rollouts.tokens[tips[place]][said[place]].tolist() for place in asked],
        clean_up_tokenization_spaces=False,
    )
    keys, waiting = {}, {}
    for place, text in zip(asked, texts, strict=True):
        row = rows[place]
        ask = asks[row.group]
        keys[place] = f"{ask.round}/{ask.number}/{row.sample}/{row.turn}"
        # All rows of a prompt are asked about by one process, which has the states of forks.
        future = how.ask(keys[place], row.episode, text, how.owns(row.group))
        if future is not None:
            waiting[place] = future
    for place, reply in how.replies(keys, waiting).items():
        counts.update(reply.info)
        _take(how, pieces, rows[place], reply, counts)


def _take(how: Driver, pieces: Pieces, row: _Told, reply: Reply, counts: Counter[str]) -> None:
    """Takes a reply to the last turn of a row."""
    rollouts, tip, end = pieces.batch.rollouts, row.tip, row.cut
    row.lost |= reply.lost
    if reply.outcome is not None:
        row.outcome = reply.outcome
    if reply.reward is not None and end > 0:
        rollouts.process_reward[tip, end - 1] += reply.reward
        row.paid = True
    paused = bool(rollouts.truncated[tip])
    if reply.done or (reply.text is None and not paused):
        if paused:
            # The text is whole: an end is put behind it, which the policy did not write.
            rollouts.tokens[tip, end], rollouts.origin[tip, end] = how.actor.stop_token(), TOOL
            rollouts.truncated[tip], rollouts.length[tip] = False, end + 1
        return
    last = int(rollouts.tokens[tip, end - 1])
    told = how.tokens_of(reply, pieces.batch.tokenizer, paused, last)
    if end + len(told) + 1 > rollouts.tokens.shape[1]:
        counts["cut_replies"] += 1
        rollouts.truncated[tip] = True
        return
    row.active, row.inject, row.turn = True, told, row.turn + 1
    counts["tool_tokens"] += len(told)


def _brought(how: Driver, rows: Sequence[_Told], batch: Batch):
    rewards = batch.rollouts.process_reward.sum(axis=1)
    paid = [reward if row.paid else None for row, reward in zip(rows, rewards, strict=True)]
    return how.grades([row.outcome for row in rows], paid, [row.lost for row in rows])
