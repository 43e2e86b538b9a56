"""Responses in turns with an environment, for the draw `turns`."""

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import numpy as np

from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.draws.asking import Driver, Episode
from rlvr_jax.experience.prompts import row_texts
from rlvr_jax.experience.requests import SampleRequest
from rlvr_jax.objectives import TOOL
from rlvr_jax.tools import Reply
from rlvr_jax.types.fields import where_tokens


class Resumed(NamedTuple):
    """Responses of an earlier step that continue.

    Fields:
      batch: their rows, with the records of their tokens.
      episodes: the episode of each row.
      ended: rows that are complete, bool [B].
    """

    batch: Batch
    episodes: list[Episode]
    ended: np.ndarray


class Half:
    """Some unfinished responses: their rows so far, and the replies that they wait for.

    Fields:
      open: rows that may have a further reply.
      rows: numbers of the responses, in order.
      begin: first token of the policy's turn that has no reply yet, [B]. A pause without a reply
        does not end a turn.
      replies: number of replies that each row has read, [B].
    """

    def __init__(
        self,
        how: Driver,
        requests: Sequence[SampleRequest],
        answers: Sequence[tuple[SampleRequest, int]],
        rows: np.ndarray,
        resumed: Resumed | None = None,
    ):
        self.how: Driver = how
        self.rows: np.ndarray = rows
        self.answers: list[tuple[SampleRequest, int]] = [answers[row] for row in rows]
        self.pauses: int = 0
        self.replies: np.ndarray = np.zeros(len(rows), int)
        self.open: np.ndarray = np.arange(len(rows))
        if resumed is not None:
            self._resume(resumed)
            self.waiting: tuple[list[int], dict[int, Any]] = self._asked()
            return
        batch = self._draw(requests)
        rollouts = batch.rollouts
        prefill = np.zeros(len(rows), int)
        if "origin" in rollouts.records:
            prefill = np.sum(np.cumprod(rollouts.records["origin"] != 0, axis=1), axis=1)
        shape = rollouts.tokens.shape
        turn = np.where(np.arange(shape[1])[None] < rollouts.length[:, None], 0, -1)
        origin = (
            np.zeros(shape, np.int32)
            if "origin" not in rollouts.records
            else rollouts.records["origin"]
        )
        self.batch: Batch = batch.with_rollouts(
            turn=turn.astype(np.int32),
            origin=origin,
            process_reward=np.zeros(shape, rollouts.reward.dtype),
        )
        self.opening: np.ndarray = prefill - [len(request.given) for request, _ in self.answers]
        self.begin: np.ndarray = prefill
        self.episodes: list[Episode] = [Episode(request.prompt) for request, _ in self.answers]
        self.waiting = self._asked()
        self.how.counts["turns"] += len(rows)

    def _resume(self, resumed: Resumed) -> None:
        """Takes rows without given first tokens, whose last tokens are a turn of the policy."""
        self.batch, self.episodes = resumed.batch, resumed.episodes
        self.open = self.open[~resumed.ended]
        turn, length = self.batch.rollouts.records["turn"], self.batch.rollouts.length
        self.opening, self.begin = np.zeros((2, len(length)), int)
        for row in range(len(length)):
            last = int(turn[row, : length[row]].max(initial=0))
            own = [turn[row, : length[row]] == each for each in range(0, last + 1, 2)]
            self.replies[row], self.begin[row] = len(own) - 1, int(np.argmax(own[-1]))
            written = [self.batch.rollouts.tokens[row, : length[row]][each] for each in own[:-1]]
            self.episodes[row].texts[:] = row_texts(self.batch.tokenizer, written)

    def _asked(self):
        """Requests replies for the open rows that may have one, if this process owns them."""
        asked, texts = self._written()
        futures = {
            row: self.how.request(
                self._key(row), self.episodes[row], text, self.how.owns(self.rows[row])
            )
            for row, text in zip(asked, texts, strict=True)
        }
        return asked, {row: future for row, future in futures.items() if future is not None}

    def _draw(self, requests: Sequence[SampleRequest]) -> Batch:
        how, key = self.how, self.how.turn.key
        key = jax.random.fold_in(key, self.pauses) if self.pauses else key
        if how.turn_tokens is not None:
            requests = [replace(request, limit=how.turn_tokens) for request in requests]
        return how.actor.draw(requests, key, how.sampling or None)

    def _written(self) -> tuple[list[int], list[str]]:
        """The open rows that may have a reply, and the policy's last text in each."""
        rollouts = self.batch.rollouts
        full = rollouts.truncated & (rollouts.length >= rollouts.tokens.shape[1])
        if self.how.turn_tokens is not None:
            room = rollouts.length - self.begin < self.how.turn_tokens
            full |= [
                not more and self.how.unended(self.batch, row, self.begin[row])
                for row, more in enumerate(room)
            ]
        asked = self.open[~full[self.open] & (self.replies[self.open] < self.how.limit)]
        ends = rollouts.length - ~rollouts.truncated
        written = [rollouts.tokens[row, self.begin[row] : ends[row]] for row in asked]
        return asked.tolist(), row_texts(self.batch.tokenizer, written)

    def _key(self, row: int) -> str:
        """The name, within the step, of the reply for which a row waits."""
        request, sample = self.answers[row]
        return f"{request.round}/{request.number}/{sample}/{self.pauses}"

    def go_on(self) -> bool:
        """Takes the replies and samples the next turn of rows; returns whether there are any."""
        names = ("tokens", "origin", "turn", "process_reward", "truncated", "length")
        copies = {name: self.batch.rollouts.get(name).copy() for name in names}
        self.batch = self.batch.with_rollouts(**copies)
        rollouts, again, requests = self.batch.rollouts, [], []
        asked, waiting = self.waiting
        for row, reply in self.how.replies({row: self._key(row) for row in asked}, waiting).items():
            reply_tokens = self.how.take(reply, self.episodes[row], self.batch, row)
            if reply_tokens is None:
                continue
            begin = int(rollouts.length[row])
            end = begin + len(reply_tokens)
            rollouts.tokens[row, begin:end], rollouts.records["origin"][row, begin:end] = (
                reply_tokens,
                TOOL,
            )
            rollouts.records["turn"][row, begin:end] = 2 * self.replies[row] + 1
            rollouts.length[row] = end
            if reply.text is not None:
                self.begin[row], self.replies[row] = end, self.replies[row] + 1
            request, sample = self.answers[row]
            given = rollouts.tokens[row, self.opening[row] : end].tolist()
            own = int(end - self.begin[row])
            requests.append(
                replace(request, samples=1, first_sample=sample, given=given, unanswered=own)
            )
            again.append(row)
        if not again:
            self.open = self.open[:0]
            return False
        self.pauses += 1
        self.how.counts["turns"] += len(again)
        self._merge(np.array(again), self._draw(requests))
        self.open = np.array(again)
        self.waiting = self._asked()
        return True

    def _merge(self, rows: np.ndarray, sampled: Batch) -> None:
        """Appends the sampled tokens and their records to some rows."""
        before, new = self.batch.rollouts, sampled.rollouts
        places = np.arange(before.tokens.shape[1])[None]
        behind = places >= before.length[rows][:, None]
        changed: dict[str, Any] = {}
        for name, array in new.token_arrays.items():
            if name not in ("turn", "process_reward"):
                own = before.get(name)
                empty = np.zeros((len(self.rows), *array.shape[1:]), array.dtype)
                changed[name] = empty if own is None else own.copy()
                changed[name][rows] = where_tokens(behind, array, changed[name][rows])
        # The actor marks all given tokens, which include the turns of the policy.
        origin = before.records["origin"].copy()
        if "origin" in new.records:
            origin[rows] = np.where(behind, new.records["origin"], origin[rows])
        turn = before.records["turn"].copy()
        inside = behind & (places < new.length[:, None])
        turn[rows] = np.where(inside, 2 * self.replies[rows][:, None], turn[rows])
        length, truncated = before.length.copy(), before.truncated.copy()
        length[rows], truncated[rows] = new.length, new.truncated
        changed |= dict(origin=origin, turn=turn, length=length, truncated=truncated)
        self.batch = self.batch.with_rollouts(**changed)

    def whole(self) -> Batch:
        """The complete rows, with the environment's grades."""
        self.how.counts["lost_answers"] += sum(episode.lost for episode in self.episodes)
        rewards = self.batch.rollouts.records["process_reward"].sum(axis=1)
        return replace(self.batch, brought=self.how.grades(self.episodes, rewards))


class PlayedHalf(Half):
    """A half whose responses play a game: each `players` consecutive rows play with each other."""

    def _asked(self):
        asked, texts = self._written()
        text_of = dict(zip(asked, texts, strict=True))
        players, waiting = self.how.world.players, {}
        for first in range(0, len(self.rows), players):
            rows = range(first, first + players)
            there = [row for row in rows if row in text_of]
            if not there:
                continue
            episode = self.episodes[first]  # of the game
            if len(there) < players:
                over = functools.partial(Reply, None, done=True)
                waiting |= {row: over for row in there if self.how.owns(self.rows[first])}
                continue
            written = [text_of[row] for row in rows]
            game = self.how.request(
                self._key(first), episode, written, self.how.owns(self.rows[first])
            )
            if game is not None:
                waiting |= {row: lambda at=row - first, game=game: game().each[at] for row in rows}
        return asked, waiting
