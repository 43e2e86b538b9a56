"""Responses that are written in segments and have common prefixes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from rlvr_jax.experience.batch import Batch, concatenate, given_tokens
from rlvr_jax.experience.parts import Actor
from rlvr_jax.experience.requests import SampleRequest, groups_of
from rlvr_jax.types.fields import where_tokens


class Segments:
    """The sampled segments of responses, each after a prefix of another one.

    A segment is a row of the actor: a prompt, given tokens that it continues, and new tokens. Its
    key depends on (part, step), number and sample; random numbers depend on the position. So
    segments of one sample number have the tokens of a response that is written at once.

    Fields:
      batch: all segments, as rows in the order of sampling.
      source: int [n, T], for each token of a segment's response the segment that sampled it.
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
        requests: Sequence[SampleRequest],
        sample: Sequence[int],
        parent: Sequence[int],
        cut: Sequence[int],
        limit: int | None = None,
        *,
        inject: Sequence[Sequence[int]] | None = None,
        unanswered: Sequence[int] | None = None,
    ) -> np.ndarray:
        """Samples a segment for each request; returns the numbers of the segments, int [n].

        Args:
          sample: number of the sample; equal only for consecutive segments of one response.
          parent: the segment whose response is continued; -1: the segment begins a response.
          cut: number of tokens of that response, its opening included, that are continued.
          limit: largest number of tokens of a segment; None: up to the end.
          inject: given, untrained tokens of each segment after those; None: none.
          unanswered: see `SampleRequest`, for each segment; None: 0.
        """
        parent, cut = np.asarray(parent, int), np.asarray(cut, int)
        inject = [()] * len(requests) if inject is None else inject
        unanswered = [0] * len(requests) if unanswered is None else unanswered
        own = [
            replace(
                request,
                samples=1,
                first_sample=int(number),
                given=[
                    *(request.given if before < 0 else self._prefix(before, place)),
                    *injected_tokens,
                ],
                unanswered=int(own),
                limit=limit,
            )
            for request, number, before, place, injected_tokens, own in zip(
                requests, sample, parent, cut, inject, unanswered, strict=True
            )
        ]
        sampled = self._actor.draw(own, self._key, self._sampling)
        # Of the given tokens only the opening of a view may be trained.
        end, injected = given_tokens(sampled.rollouts)[:, None], np.array(list(map(len, inject)))
        places = np.arange(sampled.rollouts.tokens.shape[1])[None]
        is_injected = (places >= end - injected[:, None]) & (places < end)
        number = self._added(sampled.with_rollouts(mask=sampled.rollouts.mask & ~is_injected))
        width = sampled.rollouts.tokens.shape[1]
        behind = parent >= 0
        if behind.any():
            inherited = behind[:, None] & (np.arange(width) < cut[:, None])
            self.source[number] = np.where(inherited, self.source[parent], self.source[number])
        prefill = given_tokens(sampled.rollouts) - [len(request.given) for request in own]
        self._opening[number] = np.where(behind, self._opening[parent], prefill)
        return number

    def write(
        self, requests: Sequence[SampleRequest], responses: Sequence[Sequence[int]]
    ) -> np.ndarray:
        """Adds complete responses as segments; returns their numbers, int [n].

        They have no log-probs. A response that fills the budget without a stop token is truncated.
        """
        one_each = [replace(request, samples=1, given=()) for request in requests]
        written = self._actor.written(one_each, responses)
        stop, width = self._actor.stop_token(), written.rollouts.tokens.shape[1]
        cut = [len(ids) == width and ids[-1] != stop for ids in responses]
        return self._added(written.with_rollouts(truncated=np.array(cut, bool)))

    def _added(self, sampled: Batch) -> np.ndarray:
        """The numbers of added segments, each as if it had sampled its whole response."""
        number = len(self) + np.arange(len(sampled))
        width = sampled.rollouts.tokens.shape[1]
        source = np.repeat(number[:, None], width, axis=1)
        opening = np.zeros(len(sampled), int)
        seconds = sampled.sample_seconds
        if self.batch is None:
            self.batch, self.source, self._opening = sampled, source, opening
        else:
            seconds += self.batch.sample_seconds
            self.batch = concatenate([self.batch, sampled])
            self.source = np.concatenate([self.source, source])
            self._opening = np.concatenate([self._opening, opening])
        self.batch = replace(self.batch, sample_seconds=seconds)
        return number

    def cut(self, segments: np.ndarray, places: Sequence[int]) -> None:
        """Truncates the responses that these segments end, at some positions [n]."""
        rollouts, places = self.batch.rollouts, np.asarray(places, int)
        length, truncated = rollouts.length.copy(), rollouts.truncated.copy()
        beyond = length[segments] > places
        length[segments] = np.where(beyond, places, length[segments])
        truncated[segments] |= beyond
        gone = np.zeros(rollouts.tokens.shape, bool)
        gone[segments] = np.arange(gone.shape[1])[None] >= length[segments][:, None]
        known = {name: where_tokens(~gone, array) for name, array in rollouts.token_arrays.items()}
        # Rows also have temperatures after their ends.
        known.pop("temperature", None)
        self.batch = self.batch.with_rollouts(**known, length=length, truncated=truncated)

    def _prefix(self, segment: int, cut: int) -> list[int]:
        """The prefix of a segment after the opening of its view, which the actor adds again."""
        return self.batch.rollouts.tokens[segment, self._opening[segment] : cut].tolist()

    def new_tokens(self, segments: np.ndarray) -> np.ndarray:
        """Tokens of each response that its segment sampled, bool [n, T]."""
        rollouts = self.batch.rollouts
        own = self.source[segments] == np.asarray(segments)[:, None]
        return own & rollouts.mask[segments]

    def goes_on(self, segments: np.ndarray) -> np.ndarray:
        """Responses that have neither ended nor used up their budget, bool [n]."""
        rollouts = self.batch.rollouts
        room = rollouts.tokens.shape[1]
        return rollouts.truncated[segments] & (rollouts.length[segments] < room)

    def responses(self, segments: Sequence[int], requests: Sequence[SampleRequest]) -> Batch:
        """The responses that these segments end, as rows, a group for each request.

        Every token has the records of its sampling. All sampled tokens are on the mask in every
        row that has them. `kinship` computes `parent` and `branch_position`.

        Args:
          segments: the last of each response, request by request.
          requests: all requests, in order; each has `samples` of the responses.
        """
        segments = np.asarray(segments, int)
        source = self.source[segments]
        group = groups_of(requests)
        taken = self.batch.take(segments)
        places = np.arange(source.shape[1])[None]
        there = places < taken.rollouts.length[:, None]
        # After its end a row has the values of its last segment, such as the scored temperatures.
        known = {
            name: where_tokens(there, array[source, places], array[segments])
            for name, array in self.batch.rollouts.token_arrays.items()
        }
        # Only the driver needed these records.
        known |= {"sampled_topk_logp": None, "sampled_topk_ids": None}
        parent, position = kinship(np.where(there, source, -1), group)
        batch = taken.with_rollouts(**known, group=group, trace=None).renumbered()
        batch = batch.with_rollouts(parent=parent, branch_position=position)
        rows = [request for request in requests for _ in range(request.samples)]
        return replace(batch, requests=rows, sample_seconds=self.batch.sample_seconds)


def first_samples(requests: Sequence[SampleRequest]) -> np.ndarray:
    """The number of each request's first sample, after earlier ones of its prompt, int [n]."""
    known: dict[int, int] = {}
    found = np.zeros(len(requests), int)
    for place, request in enumerate(requests):
        found[place] = request.first_sample + known.get(request.number, 0)
        known[request.number] = known.get(request.number, 0) + request.samples
    return found


def kinship(source: np.ndarray, group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The row from which each row branched off, and the position.

    The parent is the first of the earlier rows of the group with the longest common prefix; a row
    without a common prefix has none.

    Args:
      source: int [R, T], the segment that sampled a token; equal numbers at a position are one
        token, -1 is none.
      group: int [R], consecutive rows of a group.
    Returns:
      parent and branch position, int32 [R] each; -1 without a parent.
    """
    group = np.asarray(group)
    parent = np.full(len(group), -1, np.int32)
    position = parent.copy()
    for number in np.unique(group):
        rows = np.flatnonzero(group == number)
        own = source[rows]
        alike = (own[:, None] == own[None]) & (own >= 0)[:, None]
        shared = np.cumprod(alike, axis=-1).sum(axis=-1)
        # Only earlier rows are parents.
        shared = np.tril(shared, -1)
        most = shared.max(axis=1)
        parent[rows] = np.where(most > 0, rows[shared.argmax(axis=1)], -1)
        position[rows] = np.where(most > 0, most, -1)
    return parent, position
