"""RewardMap: partial credit for routes on a map, and questions from easy to hard.

"RewardMap: Tackling Sparse Rewards in Fine-grained Visual Reasoning via Multi-Stage Reinforcement
Learning", https://github.com/fscdc/RewardMap

    R    = w (10 correct + detail / 2), w by the map and for a change of lines
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = mean_i (1/n_i) Σ_t [PPO clip + β k3]

`Prompt.answer` is what `verifiers.texts.rewardmap` asks for. All questions of one kind come before
those of the next (`kinds`). w is the same in a group, so that the division by the deviation cancels
it; and the released detail charges the one leg of a direct route. The average of the clipped loss
was not found; it is GRPO's.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from rlvr_jax.experience import experience, grade_also, shape
from rlvr_jax.experience.curricula.batches import asks_for
from rlvr_jax.experience.parts import Curriculum, Setting
from rlvr_jax.objectives import (
    column,
    group_normalized,
    rollout_mean_token_mean,
    total,
)
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Epsilon, KLCoefficient
from rlvr_jax.types.parts import part
from rlvr_jax.verifiers.checks import Check


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


def rewardmap(
    kinds: Sequence[str] = (),
    kl_coefficient: KLCoefficient = 0.005,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """GRPO with a KL on the score of a route, kinds of questions one after the other.

    Args:
      kinds: of prompts, in their order; none: that of the first prompts of each.
    """
    check = Check("rlvr_jax.verifiers.texts.rewardmap:check")
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low,
            clip_high=clip_high,
            advantage=group_normalized(epsilon),
            kl_coefficient=kl_coefficient,
            aggregation=rollout_mean_token_mean(),
        ),
        experience=experience(
            curriculum=kinds_in_order(kinds),
            stages=[
                grade_also(check, ["score", "detail"]),
                shape(total({"score": column(0)})),
            ],
        ),
    )


METHOD = Method(
    rewardmap,
    "RewardMap: Tackling Sparse Rewards in Fine-grained Visual Reasoning via Multi-Stage"
    " Reinforcement Learning",
    "https://github.com/fscdc/RewardMap",
    changes="reward, curriculum",
    left_out="the maps, which are pictures",
    reports=(
        "Qwen2.5-VL-7B: 3.47 % on average over six benchmarks beyond transit maps; stages and "
        "partial credit each help"
    ),
    traps=(
        "weights of whole prompts cancel in the division by the group's std; the one leg of a "
        "direct route counts as too many; a wrong first or last stop loses all detail"
    ),
)
