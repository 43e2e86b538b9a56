"""G²RPO-A: two rows of a group begin with part of a solution, less of it as the policy succeeds.

"G²RPO-A: Guided Group Relative Policy Optimization with Adaptive Guidance",
https://github.com/T-Lab-CUHKSZ/G2RPO-A

    the first rows of a group begin with the first ℓ tokens of the worked solution
    ℓ' = ℓ ā / a every third step, a its accuracy and ā the mean of the two steps before
    A_i  = (R_i - mean) / (std + 1e-4) over all rows, std with n - 1
    loss = mean_i (1/n_i) Σ_t [-A π / sg(π) + β k3(π ‖ π_ref)]

Given tokens count as the row's own: they have its advantage, so a guided row that fails pushes the
solution down; with a mask on them this is PrefixRL's loss. ℓ stays in 1 … ℓ_max and as it is while
accuracy is 0. The release has 2 guided rows in every 12 whatever the group's size; here the first
rows of every group. β is that of the trainer they inherit from. With a budget below 3072 tokens a
guided row begins with what fits before its last token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rlvr_jax.experience import experience
from rlvr_jax.experience.parts import Stage
from rlvr_jax.objectives import (
    group_normalized,
    importance_weighted,
    kl_penalty,
    objective,
    on_policy_ratio,
    rollout_mean_token_mean,
)
from rlvr_jax.objectives.surrogates.by_origin import GIVEN
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import Count, Epsilon, KLCoefficient
from rlvr_jax.types.parts import part

WINDOW = 2
"""Accuracies that the next one is compared with."""


class Guidance(NamedTuple):
    """How much of a solution is given.

    Fields:
      length: int32 [], tokens (ℓ).
      steps: int32 [], accuracies seen.
      recent: float64 [2], the ones that the next is compared with.
    """

    length: np.ndarray
    steps: np.ndarray
    recent: np.ndarray


def guidance_after(state: Guidance, accuracy: float, longest: int) -> Guidance:
    """The guidance after a step: shorter if it was more accurate than the two before, else longer.

    Every third accuracy a_s is compared with the mean ā of the two before it. If neither is 0:
    ℓ' = ⌊min(ℓ ā / a_s, ℓ_max)⌋ where a_s < ā, max(⌊ℓ ā / a_s⌋, 1) where a_s > ā.

    Args:
      accuracy: of the step, in [0, 1].
      longest: ℓ_max.
    """
    place = int(state.steps) % (WINDOW + 1)
    recent, length = state.recent.copy(), int(state.length)
    if place < WINDOW:
        recent[place] = accuracy
    else:
        mean = recent.mean()
        if mean > 0 and accuracy > 0 and mean != accuracy:
            wanted = length * mean / accuracy
            length = max(int(wanted), 1) if accuracy > mean else int(min(wanted, longest))
    return Guidance(np.int32(length), np.int32(state.steps + 1), recent)


def first_rows(groups: Sequence[np.ndarray], number: int) -> np.ndarray:
    """The first `number` rows of every group, bool [B].

    Args:
      groups: the rows of each group.
    """
    return np.concatenate([np.arange(len(rows)) < number for rows in groups])


@part
def guide_first_rows(rows: Count, longest: Count) -> Stage:
    """Lets the first rows of every group begin with the first ℓ tokens of the worked solution.

    They are drawn beside the others, from the same prompt; the given tokens are learned from as if
    the policy had drawn them, with the advantage of the row. ℓ begins with `longest` and follows
    the accuracy of the trained rows (`guidance_after`).

    Args:
      rows: of each group that are guided.
      longest: ℓ at first and at most, tokens.
    Reads: Prompt.solution. Writes: mask, origin. Draws: `rows` for each group.
    Metrics: guidance_length (ℓ), guided_tokens (mean of what a guided row was given).
    Raises:
      ValueError: a number below 1; when a run is set up, groups without a free row, and a prompt
        without a solution.
    """

    def size(samples):
        if samples <= rows:
            raise ValueError(
                f"guide_first_rows: rows must be below the {samples} rollouts of a group, got"
                f" {rows}"
            )
        return samples - rows

    def init(setting):
        del setting
        return Guidance(np.int32(longest), np.int32(0), np.zeros(WINDOW))

    def apply(batch, actor, state, turn):
        most = min(int(state.length), turn.setting.response_tokens - 1)
        every = np.ones(len(batch.groups), bool)
        asks = [
            replace(ask, samples=rows, given=actor.encode("".join(ask.prompt.solution))[:most])
            for ask in batch.asks_of(every)
        ]
        drawn = actor.grade(actor.draw(asks, turn.key))
        batch = batch.with_groups(every, drawn, "prepend")
        rollouts = batch.rollouts
        given = (rollouts.origin == GIVEN) & first_rows(batch.groups, rows)[:, None]
        told = {
            "guidance_length": float(state.length),
            "guided_tokens": float(given.sum() / (rows * len(asks))),
        }
        return batch.with_rollouts(mask=rollouts.mask | given), state, told

    def observe(state, turn, seen, learned):
        del turn, seen
        accuracy = learned.rollouts.outcome[learned.decided].astype(float)
        if len(accuracy):
            state = guidance_after(state, float(accuracy.mean()), longest)
        return state, {}

    needs, gives = frozenset({"solution"}), frozenset({"origin"})
    return Stage(apply, init, observe, needs, size=size, writes=gives, by_row=True)


def g2rpo_a(
    guided: int = 2,
    longest: int = 3072,
    kl_coefficient: KLCoefficient = 0.04,
    epsilon: Epsilon = 1e-4,
) -> Recipe:
    """GRPO without a clip, on groups whose first rows are given the beginning of a solution.

    Args:
      guided: rows of each group that are.
      longest: tokens that they are given at first and at most (ℓ_max).
    """
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            surrogate=importance_weighted(on_policy_ratio),
            regularizers=[kl_penalty(kl_coefficient)] if kl_coefficient else [],
            aggregation=rollout_mean_token_mean(),
        ),
        experience=experience(stages=[guide_first_rows(guided, longest)]),
    )


METHOD = Method(
    g2rpo_a,
    "G²RPO-A: Guided Group Relative Policy Optimization with Adaptive Guidance",
    "https://github.com/T-Lab-CUHKSZ/G2RPO-A",
    changes="advantage, surrogate, guidance, sampling",
    gradient="stopped",
    left_out="a linear decay of the length, their other script",
    reports=(
        "small models in maths and code: far above GRPO; guidance of a fixed length gains little "
        "(abstract)"
    ),
    traps=(
        "a guided row that fails pushes the solution down; a step without any right answer freezes "
        "ℓ, when help is needed most; a solution shorter than ℓ is shown whole, answer included"
    ),
)
