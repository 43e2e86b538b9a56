"""Responses that are written piece by piece, and share their beginnings."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from rlvr_jax.experience.asks import Ask
from rlvr_jax.experience.batch import Batch, concatenate, given_tokens
from rlvr_jax.experience.parts import Actor
from rlvr_jax.types import Rollouts, axes_of


class Pieces:
    """What a driver has drawn so far: pieces, each behind the beginning of another.

    A piece is a row of the actor: prompt, the tokens it goes on from (given), new tokens. It is
    drawn as the next tokens of the response would be: with the key of (part, step), number and
    sample, and random numbers by position. So a response that is written in pieces of one sample
    number has the tokens of one that is written at once.

    Fields:
      batch: all pieces, as rows in the order in which they were drawn.
      source: int [n, T], which piece drew a token of the response that a piece ends.
    """

    def __init__(self, actor: Actor, key: jax.Array, sampling: Mapping[str, Any] | None = None):
        """
        Args:
          key: of the part and step.
          sampling: as for `Actor.draw`.
        """
        self._actor, self._key, self._sampling = actor, key, sampling
        self._opening = np.zeros(0, int)
        self.batch: Batch | None = None
        self.source: np.ndarray = np.zeros((0, 0), int)

    def __len__(self) -> int:
        return len(self.source)

    def draw(
        self,
        asks: Sequence[Ask],
        sample: Sequence[int],
        parent: Sequence[int],
        cut: Sequence[int],
        limit: int | None = None,
        inject: Sequence[Sequence[int]] | None = None,
        unanswered: Sequence[int] | None = None,
    ) -> np.ndarray:
        """Draws a piece for each ask; gives their numbers, int [n].

        Args:
          asks: what each answers.
          sample: number of the sample; other pieces than the next one of the same response have
            another.
          parent: the piece whose response it goes on from; -1: it begins one.
          cut: so many tokens of that response, its opening included, are kept.
          limit: tokens of the piece at most; None: up to the end.
          inject: tokens that stand behind those that are kept, given and not trained, of each
            piece; None: none.
          unanswered: of each, see `Ask`; None: 0.
        """
        parent, cut = np.asarray(parent, int), np.asarray(cut, int)
        inject = [()] * len(asks) if inject is None else inject
        unanswered = [0] * len(asks) if unanswered is None else unanswered
        own = [
            replace(
                ask,
                samples=1,
                first_sample=int(number),
                given=[*(ask.given if before < 0 else self._kept(before, place)), *told],
                unanswered=int(own),
                limit=limit,
            )
            for ask, number, before, place, told, own in zip(
                asks, sample, parent, cut, inject, unanswered, strict=True
            )
        ]
        drawn = self._actor.draw(own, self._key, self._sampling)
        # A view may have what is given trained: its own beginning, and nothing else.
        end, injected = given_tokens(drawn.rollouts)[:, None], np.array(list(map(len, inject)))
        places = np.arange(drawn.rollouts.tokens.shape[1])[None]
        told = (places >= end - injected[:, None]) & (places < end)
        number = self._added(drawn.with_rollouts(mask=drawn.rollouts.mask & ~told))
        width = drawn.rollouts.tokens.shape[1]
        behind = parent >= 0
        if behind.any():
            kept = behind[:, None] & (np.arange(width) < cut[:, None])
            self.source[number] = np.where(kept, self.source[parent], self.source[number])
        begun = given_tokens(drawn.rollouts) - [len(ask.given) for ask in own]
        self._opening[number] = np.where(behind, self._opening[parent], begun)
        return number

    def write(self, asks: Sequence[Ask], responses: Sequence[Sequence[int]]) -> np.ndarray:
        """Takes whole responses that were drawn before as pieces; gives their numbers, int [n].

        They have no log-probs here. One that fills the budget without a stop token was cut.
        """
        one_each = [replace(ask, samples=1, given=()) for ask in asks]
        written = self._actor.written(one_each, responses)
        stop, width = self._actor.stop_token(), written.rollouts.tokens.shape[1]
        cut = [len(ids) == width and ids[-1] != stop for ids in responses]
        return self._added(written.with_rollouts(truncated=np.array(cut, bool)))

    def _added(self, drawn: Batch) -> np.ndarray:
        """The numbers of further pieces, each as if it had drawn all of its response."""
        number = len(self) + np.arange(len(drawn))
        width = drawn.rollouts.tokens.shape[1]
        source = np.repeat(number[:, None], width, axis=1)
        opening = np.zeros(len(drawn), int)
        seconds = drawn.sample_seconds
        if self.batch is None:
            self.batch, self.source, self._opening = drawn, source, opening
        else:
            seconds += self.batch.sample_seconds
            self.batch = concatenate([self.batch, drawn])
            self.source = np.concatenate([self.source, source])
            self._opening = np.concatenate([self._opening, opening])
        self.batch = replace(self.batch, sample_seconds=seconds)
        return number

    def cut(self, pieces: np.ndarray, places: Sequence[int]) -> None:
        """Takes away what the responses that these pieces end have behind some places, [n]."""
        rollouts, places = self.batch.rollouts, np.asarray(places, int)
        length, truncated = rollouts.length.copy(), rollouts.truncated.copy()
        beyond = length[pieces] > places
        length[pieces] = np.where(beyond, places, length[pieces])
        truncated[pieces] |= beyond
        gone = np.zeros(rollouts.tokens.shape, bool)
        gone[pieces] = np.arange(gone.shape[1])[None] >= length[pieces][:, None]
        known: dict[str, Any] = {}
        for name, (_, axes) in axes_of(Rollouts).items():
            array = getattr(rollouts, name)
            # Rows have a temperature behind their ends, too.
            if axes[:2] == ("B", "T") and array is not None and name != "temperature":
                spread = gone.reshape(*gone.shape, *[1] * (array.ndim - 2))
                known[name] = np.where(spread, array.dtype.type(0), array)
        self.batch = self.batch.with_rollouts(**known, length=length, truncated=truncated)

    def _kept(self, piece: int, cut: int) -> list[int]:
        """What a piece begins with behind its view's opening, which comes again by itself."""
        return self.batch.rollouts.tokens[piece, self._opening[piece] : cut].tolist()

    def opening(self, pieces: np.ndarray) -> np.ndarray:
        """How many tokens the view begins the responses of these pieces with, int [n]."""
        return self._opening[pieces]

    def new_tokens(self, pieces: np.ndarray) -> np.ndarray:
        """Which tokens of a response these pieces drew, bool [n, T]."""
        rollouts = self.batch.rollouts
        own = self.source[pieces] == np.asarray(pieces)[:, None]
        return own & rollouts.mask[pieces]

    def goes_on(self, pieces: np.ndarray) -> np.ndarray:
        """Which responses have neither ended nor used up their budget, bool [n]."""
        rollouts = self.batch.rollouts
        room = rollouts.tokens.shape[1]
        return rollouts.truncated[pieces] & (rollouts.length[pieces] < room)

    def responses(self, pieces: Sequence[int], asks: Sequence[Ask]) -> Batch:
        """The responses that these pieces end, as rows in groups of equal asks' places.

        Every token has the records of when it was drawn; all that were drawn are on the mask, in
        every row that has them. `parent` and `branch_position` are those of `kinship`.

        Args:
          pieces: the last of each response, those to an ask one behind the other.
          asks: all that were asked, in order; each has `samples` of the responses.
        """
        pieces = np.asarray(pieces, int)
        source = self.source[pieces]
        group = np.repeat(np.arange(len(asks), dtype=np.int32), [ask.samples for ask in asks])
        taken = self.batch.take(pieces)
        places = np.arange(source.shape[1])[None]
        there = places < taken.rollouts.length[:, None]
        known = {}
        for name, (_, axes) in axes_of(Rollouts).items():
            array = getattr(self.batch.rollouts, name)
            if array is not None and axes[:2] == ("B", "T"):
                on = there.reshape(*there.shape, *[1] * (array.ndim - 2))
                # Behind its end a row is as its last piece left it: scored temperatures are there.
                known[name] = np.where(on, array[source, places], array[pieces])
        # They served the driver.
        known |= {"drawn_topk_logp": None, "drawn_topk_ids": None}
        parent, position = kinship(np.where(there, source, -1), group)
        batch = taken.with_rollouts(**known, group=group, trace=None).renumbered()
        batch = batch.with_rollouts(parent=parent, branch_position=position)
        rows = [ask for ask in asks for _ in range(ask.samples)]
        return replace(batch, asks=rows, sample_seconds=self.batch.sample_seconds)


def first_samples(asks: Sequence[Ask]) -> np.ndarray:
    """The number of each ask's first sample, behind those of the same prompt before it; int [n]."""
    known: dict[int, int] = {}
    found = np.zeros(len(asks), int)
    for place, ask in enumerate(asks):
        found[place] = ask.first_sample + known.get(ask.number, 0)
        known[ask.number] = known.get(ask.number, 0) + ask.samples
    return found


def kinship(source: np.ndarray, group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """From which row each one branched off, and where.

    Of the earlier rows of a group the first one that shares the most tokens with a row is its
    parent; with none that shares any it has no parent.

    Args:
      source: int [R, T], what drew a token; equal numbers at a place are one token, -1 is none.
      group: int [R], rows of a group side by side.
    Returns:
      parent and branch position, int32 [R] each; -1 without one.
    """
    group = np.asarray(group)
    parent = np.full(len(group), -1, np.int32)
    position = parent.copy()
    for number in np.unique(group):
        rows = np.flatnonzero(group == number)
        own = source[rows]
        alike = (own[:, None] == own[None]) & (own >= 0)[:, None]
        shared = np.cumprod(alike, axis=-1).sum(axis=-1)
        # Earlier rows alone: a row begins nothing that came before it.
        shared = np.tril(shared, -1)
        most = shared.max(axis=1)
        parent[rows] = np.where(most > 0, rows[shared.argmax(axis=1)], -1)
        position[rows] = np.where(most > 0, most, -1)
    return parent, position
