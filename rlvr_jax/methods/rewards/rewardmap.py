"""RewardMap: partial credit for routes on a map, with questions in order of difficulty.

"RewardMap: Tackling Sparse Rewards in Fine-grained Visual Reasoning via Multi-Stage Reinforcement
Learning", https://github.com/fscdc/RewardMap

    R    = w (10 correct + detail / 2), w by the map and for a change of lines
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = mean_i (1/n_i) Σ_t [PPO clip + β k3]

`verifiers.texts.rewardmap` defines the format of `Prompt.answer`. All questions of one kind come
before those of the next (`kinds`). Their average of the clipped loss was not found; it is GRPO's.

Left out: the maps, which are pictures; the task `routes` has maps as text.
Reports: Qwen2.5-VL-7B: 3.47 % on average over six benchmarks beyond transit maps. Stages and
partial credit each help.
Traps: Weights of whole prompts cancel in the division by the group's std. The only leg of a direct
route counts as excess. An incorrect first or last stop loses all detail.
"""

import functools
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from rlvr_jax.experience import (
    Curriculum,
    RunInfo,
    Shaping,
    experience,
    grade_also,
    shape,
    shaping,
)
from rlvr_jax.experience.curricula.batches import requests_for
from rlvr_jax.objectives import clipped_objective, part, rollout_mean_token_mean
from rlvr_jax.types import Method, Recipe, Shown, arguments_of
from rlvr_jax.verifiers.checks import Check


@part
def kinds_in_order(kinds: Sequence[str] = ()) -> Curriculum:
    """Picks all prompts of the first kind, then all of the second, and so on; then repeats.

    Each epoch shuffles each kind anew. Further rounds of a step take prompts from other places of
    their kinds.

    Raises:
      ValueError: when a run begins, a kind that no train prompt has.
    """

    def init(setting):
        known = {prompt.kind for prompt in setting.task.train}
        if unknown := [kind for kind in kinds if kind not in known]:
            raise ValueError(
                f"kinds_in_order: kinds must be those of the train prompts ({sorted(known)}), got"
                f" {unknown}"
            )
        return ()

    def propose(requests, state, turn):
        setting = turn.setting
        blocks = _blocks(setting, kinds)
        size = sum(map(len, blocks))
        start, ahead = turn.step * setting.prompts, turn.round / setting.rounds
        places = range(start, start + setting.prompts)
        return requests_for(
            turn, [_number(blocks, setting.seed, *divmod(place, size), ahead) for place in places]
        )

    return Curriculum(propose, init)


def _number(blocks: Sequence[np.ndarray], seed: int, epoch: int, place: int, ahead: float) -> int:
    """The prompt at a place of an epoch, moved on within its kind by a fraction of the kind."""
    ends = np.cumsum([len(block) for block in blocks])
    which = int(np.searchsorted(ends, place, side="right"))
    block = blocks[which]
    inside = place - int(ends[which]) + len(block) + int(ahead * len(block))
    return int(block[_shuffled(len(block), seed, epoch, which)[inside % len(block)]])


@functools.lru_cache(maxsize=64)
def _shuffled(size: int, seed: int, epoch: int, number: int) -> np.ndarray:
    return np.random.default_rng([seed, epoch, number]).permutation(size)


@functools.lru_cache(maxsize=4)
def _blocks(setting: RunInfo, kinds: tuple[str, ...]) -> list[np.ndarray]:
    """The numbers of the train prompts of each kind."""
    of_kind: dict[str, list[int]] = {kind: [] for kind in kinds}
    for place, prompt in enumerate(setting.task.train):
        of_kind.setdefault(prompt.kind, []).append(place)
    return [np.array(places) for places in of_kind.values()]


@part
def partial_credit() -> Shaping:
    """R = score, the first of the task's rewards; the second one is its detail.

    Metrics: reward/score (mean), partial_credit (fraction of the rows with an incorrect route and a
      detail above 0).
    """

    def reward(rollouts):
        score, detail = rollouts.records["component_rewards"][:, :2].T
        paid = (rollouts.outcome == 0) & (detail > 0)
        return score, {"reward/score": score, "partial_credit": jnp.where(paid, 1.0, 0.0)}

    return shaping(reward, columns=2)


@arguments_of(
    clipped_objective, "clip_low", "clip_high", "epsilon", "kl_coefficient", kl_coefficient=0.005
)
def rewardmap(kinds: Sequence[str] = (), **clip: Any) -> Recipe:
    """Applies GRPO with a KL to the score of a route, one kind of questions after the other.

    Args:
      kinds: kinds of prompts, in order; none: in the order of their first prompts.
    """
    check = Check("rlvr_jax.verifiers.texts.rewardmap:check")
    return Recipe(
        objective=clipped_objective(aggregation=rollout_mean_token_mean(), **clip),
        experience=experience(
            curriculum=kinds_in_order(kinds),
            stages=[
                grade_also(check, ["score", "detail"]),
                shape(partial_credit()),
            ],
        ),
    )


METHOD = Method(
    rewardmap,
    changes="reward, curriculum",
    # 64 questions of each kind, so that routes come in the third step.
    shown=Shown("routes:size=192", "experience/partial_credit"),
)
