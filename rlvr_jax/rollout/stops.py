"""Texts that pause a row.

A row pauses at the token with which its response contains one of the texts. One automaton searches
the bytes of the tokens for all texts (Aho 1975, https://doi.org/10.1145/360825.360855). It finds
a text for any split into tokens, also if the last token is longer than the text. That
token was sampled and stays whole in the row. Its further bytes may begin the next text.
"""

import hashlib
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from rlvr_jax.rollout.pool import FINISHED, STOPPED, Pool

_CELLS = 2**22  # states × tokens that are computed at a time


@dataclass(frozen=True)
class Stops:
    """An automaton that finds texts in the tokens of one vocabulary; see `find_stops`. Equal for
    equal texts and vocabularies.

    A state is the longest beginning of a text at the end of a row; 0 is the empty one.

    Fields:
      texts: in order.
      vocabulary: digest of the tokens' bytes.
      kind: int [V], of each token; tokens of one kind do the same in every state.
      following: int [S, K], the state after a token of each kind.
      found: int [S, K], the text that a token of each kind completes first, -1 without any.
    """

    texts: tuple[str, ...]
    vocabulary: str
    kind: np.ndarray = field(repr=False, compare=False)
    following: np.ndarray = field(repr=False, compare=False)
    found: np.ndarray = field(repr=False, compare=False)

    def after(self, tokens: Sequence[int], state: int = 0) -> int:
        """The state after some tokens, on the host."""
        for token in tokens:
            state = int(self.following[state, self.kind[token]])
        return state

    def written(self, pool: Pool, state: Int[Array, "R"] | None = None) -> Int[Array, "R"]:
        """The state of each row of a pool by its tokens after the prompt, given ones included.

        Args:
          state: at the end of the prompts; None: 0.
        """
        rows, slots = pool.tokens.shape
        state = jnp.zeros((rows,), jnp.int32) if state is None else jnp.asarray(state, jnp.int32)

        def read(offset, state):
            at = pool.prompt_length + offset
            token = jnp.take_along_axis(pool.tokens, jnp.minimum(at, slots - 1)[:, None], axis=1)
            return jnp.where(at < pool.length, self._step(self.following, state, token), state)

        return jax.lax.fori_loop(0, jnp.max(pool.length - pool.prompt_length), read, state)

    def paused(
        self, pool: Pool, sampled: Bool[Array, "R"], state: Int[Array, "R"]
    ) -> tuple[Pool, Int[Array, "R"]]:
        """The pool with those rows STOPPED whose last token completes a text, and the new states.

        Args:
          sampled: rows whose last token was just sampled.
          state: of each row before that token.
        """
        last = jnp.maximum(pool.length - 1, 0)[:, None]
        token = jnp.take_along_axis(pool.tokens, last, axis=1)
        which = self._step(self.found, state, token)
        found = sampled & (pool.status != FINISHED) & (which >= 0)
        pool = replace(
            pool,
            status=jnp.where(found, STOPPED, pool.status),
            stop=jnp.where(found, which, pool.stop),
        )
        return pool, jnp.where(sampled, self._step(self.following, state, token), state)

    def _step(self, table, state, token) -> Int[Array, "R"]:
        return jnp.asarray(table)[state, jnp.asarray(self.kind)[token[:, 0]]]


def find_stops(texts: Sequence[str], tokens: Sequence[bytes]) -> Stops:
    """Returns the stops of some texts, at which rows pause.

    Args:
      texts: texts, none of them empty.
      tokens: the bytes that each token of the vocabulary adds to a text; empty if it adds none.
    Raises:
      ValueError: no text, or an empty one.
    """
    texts = tuple(texts)
    if not texts or not all(isinstance(text, str) and text for text in texts):
        raise ValueError(f"find_stops: texts must be texts that are not empty, got {texts!r}")
    following, found = _automaton([text.encode() for text in texts])
    digest = hashlib.sha256()
    for token in tokens:
        digest.update(len(token).to_bytes(4, "little") + token)
    # Long tokens first: those that still have a byte at a place are then the first ones.
    order = np.argsort([-len(token) for token in tokens], kind="stable")
    kinds: dict[bytes, int] = {}
    kind = np.zeros(len(tokens), np.int32)
    columns = []
    at_once = max(1, _CELLS // len(following))
    for start in range(0, len(order), at_once):
        part = order[start : start + at_once]
        after, first = _through(following, found, [tokens[i] for i in part])
        both = np.ascontiguousarray(np.concatenate([after, first]).T)
        for place, column in zip(part.tolist(), both, strict=True):
            key = column.tobytes()
            if key not in kinds:
                kinds[key] = len(kinds)
                columns.append(column)
            kind[place] = kinds[key]
    after, first = np.split(np.stack(columns, axis=1), 2)
    return Stops(texts, digest.hexdigest()[:16], kind, after, first)


def _automaton(texts: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """The state after each byte, int32 [S, 256], and the first text that ends in each state, int32
    [S], -1 without any."""
    children: list[dict[int, int]] = [{}]
    ends = [-1]
    for number, text in enumerate(texts):
        state = 0
        for byte in text:
            if byte not in children[state]:
                children[state][byte] = len(children)
                children.append({})
                ends.append(-1)
            state = children[state][byte]
        if ends[state] < 0:
            ends[state] = number
    following = np.zeros((len(children), 256), np.int32)
    shorter = [0] * len(children)  # the longest other beginning of a text that a state ends with
    waiting = deque([0])
    while waiting:
        state = waiting.popleft()
        if state:
            following[state] = following[shorter[state]]
            own, other = ends[state], ends[shorter[state]]
            ends[state] = min(own, other) if min(own, other) >= 0 else max(own, other)
        for byte, child in children[state].items():
            shorter[child] = int(following[state, byte])
            following[state, byte] = child
            waiting.append(child)
    return following, np.array(ends, np.int32)


def _through(
    following: np.ndarray, found: np.ndarray, tokens: Sequence[bytes]
) -> tuple[np.ndarray, np.ndarray]:
    """The state after each token from each state, and the text that it completes first, [S, n].

    Args:
      tokens: the longest first.
    """
    length = np.array([len(token) for token in tokens])
    letters = np.zeros((len(tokens), max(length.max(), 1)), np.uint8)
    for row, token in zip(letters, tokens, strict=True):
        row[: len(token)] = np.frombuffer(token, np.uint8)
    state = np.repeat(np.arange(len(following), dtype=np.int32)[:, None], len(tokens), axis=1)
    first = np.full(state.shape, -1, np.int32)
    for place in range(letters.shape[1]):
        there = int(np.sum(length > place))
        state[:, :there] = following[state[:, :there], letters[:there, place]]
        ended = found[state[:, :there]]
        first[:, :there] = np.where(first[:, :there] < 0, ended, first[:, :there])
    return state, first
