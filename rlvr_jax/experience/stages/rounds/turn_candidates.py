"""Several ways to take one turn, ranked by a critic that knows the answer, as pairs."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import numpy as np

from rlvr_jax.experience.asks import View
from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.parts import Actor, Stage
from rlvr_jax.types.hyperparameters import Count, Range
from rlvr_jax.types.parts import part

__all__ = ["pair_turns"]


@part(by_row=True, counts=True)
def pair_turns(view: View, candidates: Annotated[int, Range(2)] = 16, pairs: Count = 4) -> Stage:
    """Draws one turn of each group again, many times, and pairs better with worse ones.

    Of all turns of a group's answers one is chosen at random. What stands before it is given, and
    the recipe's draw takes the turn `candidates` times; what follows on it is played to its end and
    left out (an environment with a state begins it anew).

    The critic is the recipe's teacher: a turn is worth the mean over its tokens of the teacher's
    log-prob less that of the first policy, both behind the prompt under the view. Of the better
    half and of the worse half so many are drawn as there are pairs. A pair is a group, its better
    turn has the reward 1 and the other one 0; the turn alone is on the mask.

    Args:
      view: what critic and first policy read, such as `with_reference()`.
      candidates: of a turn, at least two.
      pairs: of a turn, at most half the candidates.
    Draws: `candidates` rows for each group. Writes: mask, turn, reward.
    Metrics: turn_gap (mean worth of the better turns of pairs less that of the others, nats).
    Raises:
      ValueError: numbers outside of what is said.
    Source: SWEET-RL pairs so (the link stands in the method's card), for every turn.
    """
    if 2 * pairs > candidates:
        raise ValueError(
            f"pair_turns: pairs must be at most half of {candidates} candidates, got {pairs}"
        )

    def apply(batch, actor, state, turn):
        random, task = turn.random(), turn.setting.task
        asks = []
        for rows in batch.groups:
            row, start = _some_turn(batch, rows, random)
            ask = batch.asks[row]
            begun = len(ask.view.show(ask.prompt, task).begun(actor.encode))
            given = batch.rollouts.tokens[row, begun:start].tolist() if start > begun else ask.given
            asks.append(replace(ask, samples=candidates, given=given))
        drawn = _first_turns(actor.grade(actor.draw(asks, turn.key)))
        worth = _worth(drawn, actor, view)
        chosen, half = [], candidates // 2
        for rows in drawn.groups:
            order = rows[np.argsort(-worth[rows], kind="stable")]
            better = random.permutation(order[:half])[:pairs]
            worse = random.permutation(order[-half:])[:pairs]
            chosen.append(np.stack([better, worse], axis=1))
        places = np.concatenate(chosen)
        gap = worth[places[:, 0]] - worth[places[:, 1]]
        paired = drawn.take(places.reshape(-1)).with_rollouts(
            group=np.repeat(np.arange(len(places), dtype=np.int32), 2),
            reward=np.tile([1, 0], len(places)).astype(drawn.rollouts.reward.dtype),
        )
        return paired.renumbered(), state, {"turn_gap": float(gap.mean())}

    return Stage(apply, reads=view.reads, views=(view,), most=2.0 * pairs)


def _some_turn(batch: Batch, rows: np.ndarray, random: np.random.Generator) -> tuple[int, int]:
    """A turn of the policy among those of some rows: its row, and where it begins."""
    own = _turns(batch)[rows]
    found = [
        (row, n) for row, line in zip(rows, own, strict=True) for n in np.unique(line[line >= 0])
    ]
    if not found:
        return int(rows[0]), 0
    row, number = found[random.integers(len(found))]
    return int(row), int(np.argmax(own[rows == row][0] == number))


def _turns(batch: Batch) -> np.ndarray:
    """The turn of each token on the mask, -1 elsewhere; an answer without turns is one."""
    turn = 0 if batch.rollouts.turn is None else batch.rollouts.turn
    return np.where(batch.rollouts.mask, turn, -1)


def _first_turns(drawn: Batch) -> Batch:
    """The rows up to the end of the first turn that was drawn, which alone is on the mask."""
    rollouts = drawn.rollouts
    own = _turns(drawn) == 0
    places = np.arange(own.shape[1], dtype=np.int32)[None]
    length = np.max(np.where(own, places + 1, 0), axis=1).astype(np.int32)
    there = places < length[:, None]
    return drawn.with_rollouts(
        mask=own,
        length=length,
        tokens=np.where(there, rollouts.tokens, 0),
        turn=np.where(own, 0, -1).astype(np.int32),
    )


def _worth(drawn: Batch, actor: Actor, view: View) -> np.ndarray:
    """The critic's advantage of each turn, [B]; 0 of one without tokens."""
    tokens, length = actor.prompts([replace(ask, view=view) for ask in drawn.asks])
    read = drawn.with_rollouts(prompt_tokens=tokens, prompt_length=length)
    critic, first = (actor.score(read, ["logp"], of)["logp"] for of in ("teacher", "start"))
    mask = drawn.rollouts.mask
    total = np.where(mask, np.asarray(critic) - np.asarray(first), 0).sum(axis=1)
    return total / np.maximum(mask.sum(axis=1), 1)
