"""Drafts under the current policy: how much of them it takes over, and what it writes there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rlvr_jax.experience.asks import Ask
from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.draws.acceptance import accepted_prefix, residual
from rlvr_jax.experience.parts import Actor

__all__ = ["Verified", "taken_over", "verify"]


class Verified(NamedTuple):
    """Drafts that the current policy has scored, row by row.

    Fields:
      rows: of each the place of its ask and the number of the sample.
      batch: the drafts as responses.
      length, cut: their tokens, and those of them that are accepted.
      begun: tokens that the response begins with: the accepted ones, and the one drawn in the place
        of the rejected one where residuals are known.
      done: whether these are the whole response; one of no token is none.
    """

    rows: list[tuple[int, int]]
    batch: Batch
    length: np.ndarray
    cut: np.ndarray
    begun: np.ndarray
    done: np.ndarray

    def given(self, row: int) -> list[int]:
        """The tokens that a response begins with."""
        return self.batch.rollouts.tokens[row, : self.begun[row]].tolist()


def verify(
    asks: Sequence[Ask],
    drafted: Sequence[bool],
    actor: Actor,
    drafts: dict[str, np.ndarray],
    random: np.random.Generator,
    lenience: float,
) -> Verified:
    """One scoring pass over the drafts of those asks that have some.

    Args:
      drafts: tokens, logp [prompts, samples, T], length, truncated [prompts, samples]; and
        all_logp [prompts, samples, T, V] where rejected tokens are replaced by residuals.
    """
    own = [(place, ask) for place, ask in enumerate(asks) if drafted[place]]
    rows = [(place, sample) for place, ask in own for sample in range(ask.samples)]
    kept = drafts["length"].shape[1]
    sample = np.array([sample for _, sample in rows])
    index = np.array([asks[place].number for place, _ in rows]), np.minimum(sample, kept - 1)
    length = np.where(sample < kept, drafts["length"][index], 0)
    tokens = [ids[:n].tolist() for ids, n in zip(drafts["tokens"][index], length, strict=True)]
    batch = actor.written([ask for _, ask in own], tokens)
    exact = "all_logp" in drafts
    scored = actor.score(batch, ("logp", "entropy", *(["all_logp"] if exact else [])))
    log_ratio = np.asarray(scored["logp"], np.float64) - drafts["logp"][index]
    cut = accepted_prefix(log_ratio, length, random.random(log_ratio.shape), lenience)
    on, dtype = batch.rollouts.mask, batch.rollouts.temperature.dtype
    batch = batch.with_rollouts(
        behaviour_logp=np.where(on, scored["logp"], 0).astype(dtype),
        entropy=np.where(on, scored["entropy"], 0).astype(dtype),
        truncated=drafts["truncated"][index],
    )
    whole = (cut == length) & (length > 0)
    verified = Verified(rows, batch, length, cut, cut, whole)
    if exact:
        then = drafts["all_logp"][index]
        verified = _replaced(verified, scored["all_logp"], then, random, actor.stop_token())
    return verified


def _replaced(verified: Verified, now, then, random, stop: int) -> Verified:
    """With a token of the residual in the place of each rejected one.

    Args:
      now, then: log-probs of all tokens, [B, T, V], of the policy and of the drafts.
    """
    rollouts, cut = verified.batch.rollouts, verified.cut
    rejected = np.flatnonzero(cut < verified.length)
    chances = residual(now[rejected, cut[rejected]], then[rejected, cut[rejected]])
    # The first token whose cumulated chance exceeds u.
    above = np.cumsum(chances, axis=-1) > random.random(len(rejected))[:, None]
    drawn = np.where(above.any(axis=-1), above.argmax(axis=-1), chances.argmax(axis=-1))
    tokens = np.where(_before(rollouts.tokens, cut), rollouts.tokens, 0)
    logp, entropy = rollouts.behaviour_logp.copy(), rollouts.entropy.copy()
    tokens[rejected, cut[rejected]] = drawn
    # The policy's own log-prob of it: that is how often verification writes it.
    of_place = now[rejected, cut[rejected]].astype(np.float64)
    logp[rejected, cut[rejected]] = np.take_along_axis(of_place, drawn[:, None], axis=-1)[:, 0]
    begun, done = cut.copy(), verified.done.copy()
    begun[rejected] += 1
    ended = drawn == stop
    done[rejected] = ended | (begun[rejected] == tokens.shape[1])
    on = _before(tokens, begun)
    truncated = rollouts.truncated.copy()
    truncated[rejected] = ~ended
    batch = verified.batch.with_rollouts(
        tokens=tokens,
        length=begun.astype(rollouts.length.dtype),
        mask=on,
        behaviour_logp=np.where(on, logp, 0),
        entropy=np.where(on, entropy, 0),
        truncated=truncated,
    )
    return verified._replace(batch=batch, begun=begun, done=done)


def _before(tokens: np.ndarray, count: np.ndarray) -> np.ndarray:
    return np.arange(tokens.shape[1])[None] < count[:, None]


def taken_over(drawn: Batch, verified: Verified, rows: np.ndarray) -> Batch:
    """Responses that were drawn behind parts of drafts, which are theirs from now on.

    Args:
      rows: of the drafts.
    """
    rollouts, drafts = drawn.rollouts, verified.batch.rollouts
    front = _before(rollouts.tokens, verified.begun[rows])
    changes = {
        name: np.where(front, getattr(drafts, name)[rows], getattr(rollouts, name))
        for name in ("behaviour_logp", "entropy")
    }
    changes["mask"] = rollouts.mask | front
    if rollouts.origin is not None:
        changes["origin"] = np.where(front, 0, rollouts.origin).astype(np.int32)
    if rollouts.drawn_temperature is not None:
        heat = np.where(front, rollouts.temperature, rollouts.drawn_temperature)
        changes["drawn_temperature"] = heat
    return drawn.with_rollouts(**changes)
