"""Kinds of prompts one after the other."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from rlvr_jax.experience.curricula.batches import asks_for
from rlvr_jax.experience.parts import Curriculum, Setting
from rlvr_jax.types.parts import part

__all__ = ["kinds_in_order"]


@part
def kinds_in_order(kinds: Sequence[str] = ()) -> Curriculum:
    """All prompts of the first kind, then all of the second, and so on; then all again.

    Each kind is shuffled anew each time; no prompt of a kind comes before the last of the one
    before it. Further rounds of a step are of the same kinds, from elsewhere in them.

    Args:
      kinds: in which order; those that are not named come last, in the order of their first
        prompts.
    Raises:
      ValueError: when a run begins, a kind that no train prompt has.
    """
    kinds = tuple(kinds)

    def init(setting):
        known = {prompt.kind for prompt in setting.task.train}
        if unknown := [kind for kind in kinds if kind not in known]:
            raise ValueError(
                f"kinds_in_order: kinds must be those of the train prompts ({sorted(known)}), got"
                f" {unknown}"
            )
        return ()

    def propose(asks, state, turn):
        del asks, state
        setting = turn.setting
        blocks = _blocks(setting, kinds)
        size = sum(map(len, blocks))
        start, ahead = turn.step * setting.prompts, turn.round / setting.rounds
        places = range(start, start + setting.prompts)
        return asks_for(
            turn, [_number(blocks, setting.seed, *divmod(place, size), ahead) for place in places]
        )

    return Curriculum(propose, init)


def _number(blocks: Sequence[np.ndarray], seed: int, epoch: int, place: int, ahead: float) -> int:
    """The prompt at a place of an epoch, or a share of its block ahead of it."""
    ends = np.cumsum([len(block) for block in blocks])
    which = int(np.searchsorted(ends, place, side="right"))
    block = blocks[which]
    inside = place - int(ends[which]) + len(block) + int(ahead * len(block))
    return int(block[_shuffled(len(block), seed, epoch, which)[inside % len(block)]])


@functools.lru_cache(maxsize=64)
def _shuffled(size: int, seed: int, epoch: int, number: int) -> np.ndarray:
    return np.random.default_rng([seed, epoch, number]).permutation(size)


@functools.lru_cache(maxsize=4)
def _blocks(setting: Setting, kinds: tuple[str, ...]) -> list[np.ndarray]:
    """The places of the train prompts of each kind."""
    of_kind: dict[str, list[int]] = {kind: [] for kind in kinds}
    for place, prompt in enumerate(setting.task.train):
        of_kind.setdefault(prompt.kind, []).append(place)
    return [np.array(places) for places in of_kind.values()]
