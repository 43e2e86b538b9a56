"""DARS: hard prompts get more rollouts instead of more weight.

"Depth-Breadth Synergy in RLVR: Unlocking LLM Reasoning Gains with Adaptive Exploration",
https://github.com/yangzhch6/DARS

    1. N responses to each prompt, of which a fraction u is correct
    2. ΔN more for prompts with u < ½: S = 2u(1 - u), u = 0.5/N if none is correct,
       equal treatment   ΔN = ⌈(N/2 - N S) / S⌉
       by hardness       ΔN = ⌈(2(1 - u) N/2 - N S) / S⌉, at most N_max - N
    3. A_i  = R_i - mean over all N + ΔN rollouts of the prompt
       loss = Σ max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ n_i, over mixed groups

The absolute advantages of a prompt add up to N · 2u(1 - u), which is small for a hard prompt.
Groups differ in size, and groups of one outcome are dropped. N is 8 and N_max 32 (equal treatment)
or 64 (by hardness: set `most=8`). The authors' DARS-B takes one full-batch step on 3072 prompts,
twice, at a learning rate of 5e-6. These are settings of a run. The clip is ours. In the authors'
code, the second call samples with the validation settings. Here both calls sample at the training
temperature.

Left out: the form for normalized advantages.
Reports: Qwen2.5-Math 1.5B and 7B, Llama 8B: pass@k rises and pass@1 does not fall. With very large
batches both rise (abstract, no numbers).
Traps: A prompt that stays unsolved gets the most rollouts, without any gradient. Hard prompts have
more rows and therefore more weight in the token mean.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from rlvr_jax.experience import Stage, experience, refill, uniform
from rlvr_jax.objectives import clipped_objective, group_centered
from rlvr_jax.types import Function, Method, Recipe, Shown, is_correct, part
from rlvr_jax.types.hyperparameters import AtLeastOne, ClipHigh, ClipLow

Budget = Callable[[np.ndarray, int], np.ndarray]
"""(outcomes [G, N], NaN if ungraded; largest number of rows of a group) -> int [G], new rows."""


@part
def draw_more(budget: Budget, most: AtLeastOne) -> Stage:
    """Samples more rows for some groups, whose sizes then differ.

    The new rows follow the first ones, in the same group. Their number depends on the first
    outcomes, so the fraction of correct ones among all is unbiased only given that rule.

    Args:
      budget: number of new rows, such as `budget_for_hard()`.
      most: largest size of a group, as a multiple of its first size.
    Reads: outcome. Draws: the rows of the budget. Metrics: extra_rows (fraction of the first ones),
      extra_groups (fraction of the groups with new rows).
    """

    def apply(batch, actor, state, turn):
        outcomes = batch.outcomes()
        limit = int(most * outcomes.shape[1])
        extra = np.clip(budget(outcomes, limit), 0, limit - outcomes.shape[1])
        metrics = {
            "extra_rows": float(extra.sum() / len(batch)),
            "extra_groups": float(np.mean(extra > 0)),
        }
        if not extra.any():
            return batch, state, metrics
        # One request per row: the sampler compiles once for any number of rows.
        requests = [
            replace(batch.requests[rows[0]], samples=1, first_sample=place)
            for rows, number in zip(batch.groups, extra, strict=True)
            for place in range(number)
        ]
        sampled = actor.grade(actor.draw(requests, turn.key))
        sizes = extra[extra > 0]
        group = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        sampled = sampled.with_rollouts(group=group).renumbered()
        return batch.with_groups(extra > 0, sampled, "append"), state, metrics

    return Stage(apply, most=float(most))


@part
def budget_for_hard(by_hardness: bool = False) -> Function:
    """More rows for hard prompts, so that their advantages reach a target (`extra_rollouts`).

    An outcome above ½ is correct. N is the number of columns of the outcomes.

    Args:
      by_hardness: harder prompts get more than equal treatment.
    """

    def count(outcomes: np.ndarray, most: int) -> np.ndarray:
        correct = np.sum(is_correct(np.nan_to_num(outcomes)), axis=1)
        return extra_rollouts(correct, outcomes.shape[1], most, by_hardness=by_hardness)

    return count


def extra_rollouts(
    num_correct: np.ndarray, group_size: int, max_rollouts: int, *, by_hardness: bool = False
) -> np.ndarray:
    """ΔN, the rollouts to sample in addition to the first N (`group_size`).

    S is the mean |A| of centered advantages, and N / 2 their largest sum. With equal treatment
    every prompt reaches it; by hardness, up to twice that. ΔN is 0 for u ≥ ½. It is computed in
    integers, because quotients of floats may round up.

    Args:
      num_correct: correct ones of the first N rollouts, in [0, N].
      group_size: rollouts of each prompt so far (N).
      max_rollouts: largest number of rollouts of a prompt, at least N.
      by_hardness: harder prompts get more than equal treatment.
    Raises:
      ValueError: group_size not positive, or max_rollouts below it.
    """
    if not 0 < group_size <= max_rollouts:
        raise ValueError(
            f"extra_rollouts: group_size must be in [1, max_rollouts {max_rollouts}],"
            f" got {group_size}"
        )
    table = [
        min(_extra(correct, group_size, by_hardness), max_rollouts - group_size)
        for correct in range(group_size + 1)
    ]
    return np.asarray(table, np.int32)[num_correct]


def _extra(correct, size, by_hardness):
    # With u = h / 2N all quotients are N-fold ratios of integers.
    h = max(2 * correct, 1)
    if h >= size:
        return 0
    miss = 2 * size - h
    wanted = -(-(size**2) // h) if by_hardness else -(-(size**3) // (h * miss))
    return max(wanted - size, 0)


def depth_breadth_dars(
    by_hardness: bool = False,
    most: AtLeastOne = 4.0,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.28,
) -> Recipe:
    """Applies centered advantages and clip-higher to groups of mixed outcomes.

    Args:
      by_hardness: whether harder prompts get more rollouts than with equal treatment.
      most: largest number of rollouts of a prompt, as a multiple of the first ones (N_max / N).
    """
    return Recipe(
        objective=clipped_objective(clip_low, clip_high, advantage=group_centered()),
        experience=experience(
            stages=[
                draw_more(budget_for_hard(by_hardness), most),
                # Further prompts would have no extra rollouts.
                refill(uniform, rounds=1),
            ]
        ),
    )


METHOD = Method(
    depth_breadth_dars,
    changes="advantage, selection, sampling",
    shown=Shown("brackets", "experience/extra_rows"),
)
