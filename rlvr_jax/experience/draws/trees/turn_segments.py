"""Turns with an environment as segments, and responses that fork after a reply."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rlvr_jax.experience.draws.asking import THREADS, Driver, Episode, environment_of
from rlvr_jax.experience.draws.trees.branching import Branches, Row, advance
from rlvr_jax.experience.draws.trees.segments import Segments
from rlvr_jax.experience.draws.turns import turns
from rlvr_jax.experience.parts import Draw
from rlvr_jax.experience.prompts import row_texts
from rlvr_jax.experience.requests import SampleRequest
from rlvr_jax.objectives import TOOL
from rlvr_jax.tools import Environment
from rlvr_jax.types.hyperparameters import Count, NonNegative, Unit
from rlvr_jax.types.parts import part


@dataclass
class TurnRow(Row):
    """A response in an environment.

    Fields:
      turn: number of replies that it has read.
      asked: number of replies that it has requested.
      answered: tokens up to the end of the last reply; the turn after them has no reply yet.
      inject: tokens of the last reply, which its next turn follows.
      spare: as for `Driver.take`.
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
    segments: Segments,
    requests: Sequence[SampleRequest],
    rows: Sequence[TurnRow],
    limit: int | None = None,
    until: Sequence[int] | None = None,
    behind: Sequence[int] = (),
) -> np.ndarray:
    """Samples the next turn of some rows, after the replies to them; returns the new segments.

    A segment is returned as its number.

    Args:
      segments: receives the new segments.
      requests, limit, until: as for `advance`.
      rows: rows to continue.
      behind: tokens that are given after the reply of a row.
    """
    cuts, tips = np.array([row.cut for row in rows]), [row.tip for row in rows]
    sampled = advance(
        segments,
        requests,
        rows,
        limit,
        until,
        inject=[[*row.inject, *behind] for row in rows],
        unanswered=[
            max(0, row.cut + len(row.inject) - row.answered) if row.tip >= 0 and not behind else 0
            for row in rows
        ],
    )
    rollouts = segments.batch.rollouts
    length = rollouts.length[sampled]
    places = np.arange(rollouts.tokens.shape[1])[None]
    end = cuts + [len(row.inject) for row in rows]
    number = np.array([row.turn for row in rows])[:, None]
    of_reply = (places >= cuts[:, None]) & (places < end[:, None])
    written = (places >= end[:, None]) & (places < length[:, None])
    # If several rows continue after one reply, its source is the first row.
    first: dict[int, int] = {}
    owner = [first.setdefault(tip, number) for tip, number in zip(tips, sampled, strict=True)]
    segments.source[sampled] = np.where(
        of_reply, np.array(owner)[:, None], segments.source[sampled]
    )
    shape = rollouts.tokens.shape
    new = {
        "turn": np.full(shape, -1, np.int32),
        "origin": np.zeros(shape, np.int32),
        "process_reward": np.zeros(shape, rollouts.reward.dtype),
    }
    # Copies, because replies change them in place.
    known = {name: rollouts.get(name) for name in (*new, "tokens", "length", "truncated")}
    known = {name: new[name] if own is None else own.copy() for name, own in known.items()}
    known["turn"][sampled] = np.where(written, 2 * number, np.where(of_reply, 2 * number - 1, -1))
    known["origin"][sampled] = np.where(of_reply, TOOL, known["origin"][sampled])
    segments.batch = segments.batch.with_rollouts(**known)
    return sampled


def answer_turns(
    how: Driver, segments: Segments, requests: Sequence[SampleRequest], rows: Sequence[TurnRow]
) -> None:
    """Adds to rows the replies to their last turns; rows without a reply become inactive.

    Args:
      how: environment and limits of turns.
      segments: of the rows.
      requests: request of each row.
      rows: rows whose last turn has no reply yet.
    """
    rollouts = segments.batch.rollouts
    budget = rollouts.tokens.shape[1]
    tips = np.array([row.tip for row in rows])
    paused = rollouts.truncated[tips]
    for row in rows:
        row.active, row.inject = False, ()
    asked = [
        place
        for place, row in enumerate(rows)
        if row.turn < how.limit
        and not how.unended(segments.batch, row.tip, row.answered)
        and not (paused[place] and row.cut >= budget)
    ]
    # Given tokens and the end of a response are not part of its text.
    places = np.arange(budget)
    sampled = rollouts.records["origin"][segments.source[tips], places] == 0
    sampled &= places >= np.array([row.answered for row in rows])[:, None]
    sampled &= places < (rollouts.length[tips] - ~paused)[:, None]
    written = [rollouts.tokens[tips[place]][sampled[place]] for place in asked]
    texts = row_texts(segments.batch.tokenizer, written)
    keys, waiting = {}, {}
    for place, text in zip(asked, texts, strict=True):
        row = rows[place]
        request = requests[row.group]
        keys[place] = f"{request.round}/{request.number}/{row.sample}/{row.asked}"
        row.asked += 1
        # One process requests the replies to all rows of a prompt, as it has the states of forks.
        future = how.request(keys[place], row.episode, text, how.owns(row.group))
        if future is not None:
            waiting[place] = future
    for place, reply in how.replies(keys, waiting).items():
        row = rows[place]
        reply_tokens = how.take(reply, row.episode, segments.batch, row.tip, row.spare)
        if reply_tokens is None:
            continue
        row.active, row.inject = True, reply_tokens
        if reply.text is not None:
            row.turn, row.answered = row.turn + 1, row.cut + len(reply_tokens)


@part
def branch_turns(
    environment: Environment | None = None,
    limit: Count = 8,
    reply_tokens: Count = 512,
    weight: NonNegative = 0.2,
    base: Unit = 0.5,
    penalty: NonNegative = 0.0,
    fraction: Unit = 0.5,
    sensitivity: NonNegative | None = None,
    top: Count = 10,
    window: Count = 20,
) -> Draw:
    """Writes responses in turns with an environment, and forks a response after a reply.

    Rows are written as by `turns` and forked as by `branch_rounds`. The turns of the policy are the
    rounds: a row may fork after each of its turns that has a reply, except the first one. A fork
    copies the context, the reply, and the environment's state of the episode. It has different
    random numbers and separate replies. Shared turns are trained in every row that has them,
    replies in none. All prompts are sampled together, so sampling waits for replies.

    Evaluations sample by `turns`: their responses are samples of the policy, without forks.

    Args:
      environment, limit, reply_tokens: as for `turns`.
      weight, base, penalty, fraction, sensitivity, top, window: as for `branch_rounds`.
    Writes: turn, origin, process_reward, as `turns`.
    Metrics: forked_rows (rows that fork from another one), begun_rows (rows that begin at the
      prompt), turns (sampled turns), answers (rows), tool_tokens (tokens of replies, each reply
      once, however many rows continue after it), cut_replies (replies that do not fit),
      lost_answers (ungraded rows); those of the environment.
    Source: ARPO and AEPO (the links are in the methods' cards).
    """
    whole = turns(environment, limit, reply_tokens)
    branches = Branches(weight, base, penalty, fraction, sensitivity, top, window)

    def init(setting):
        branches.check_vocabulary("branch_turns", setting)
        environment_of("branch_turns", environment, setting.task, alone=True)
        return ()

    def apply(requests, actor, state, turn):
        vocabulary = turn.setting.vocabulary
        with concurrent.futures.ThreadPoolExecutor(THREADS) as threads:
            world = environment_of("branch_turns", environment, turn.setting.task, alone=True)
            how = Driver(actor, world, turn, limit, reply_tokens, {"record_top": top}, threads)
            segments = Segments(actor, turn.key, how.sampling)

            def make(group, sample):
                return TurnRow(group, sample, episode=Episode(requests[group].prompt))

            def write(rows):
                sampled = draw_turn(segments, requests, rows)
                entropies = branches.entropies(segments, sampled, vocabulary)
                answer_turns(how, segments, requests, rows)
                return entropies

            rows, forks = branches.grow(requests, segments, turn.random(), vocabulary, make, write)
        batch = segments.responses([row.tip for row in rows], requests)
        rewards = batch.rollouts.records["process_reward"].sum(axis=1)
        batch = replace(batch, brought=how.grades([row.episode for row in rows], rewards))
        lost = sum(row.episode.lost for row in rows)
        how.counts.update(forks, answers=len(rows), turns=len(segments), lost_answers=lost)
        return batch, state, {name: float(value) for name, value in how.counts.items()}

    return replace(whole, apply=apply, init=init, evaluation=whole)
