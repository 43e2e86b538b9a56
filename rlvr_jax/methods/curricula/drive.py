"""DRIVE: training continues on fewer and fewer prompts, those with the lowest pass rates.

"DRIVE: Data Curation Best Practices for Reinforcement Learning with Verifiable Reward in
Competitive Code Generation", https://arxiv.org/abs/2511.06307

    pool_0 = all prompts;  pool_i = the k_i prompts of pool_(i-1) of lowest pass rate
    loss   = mean_i (1/n_i) Σ_t max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)), A GRPO's

The first phase is the paper's stage 1, on all prompts. The others are its stage 2, on 72, 50 and 25
of 175 prompts for 64, 32 and 32 steps. `--dynamic-sampling` drops groups without a correct response
from the batch, but not from the pool.

A reconstruction. The paper estimates pass rates with a number of samples that it does not state.
Here the pass rate is that of a prompt's last group. The paper's two stages are two data sets with 8
and 64 rollouts and 24 K and 32 K tokens. Here they are one, with the sizes of the run. The clip of
the paper's GRPO is not stated. Stage 1 matters: with only the small set, the authors' run
collapses. The last pool is sampled many times, so watch the held-out rates.

Left out: fine-tuning on hard prompts before the run; other rollouts and budgets in the first phase.
Reports: Qwen2.5-32B from SFT to the end: Codeforces weekly 0.115 to 0.182, LeetCode weekly 0.578 to
0.653. LiveCodeBench V6 is the training pool.
Traps: Prompts that are never solved stay in the pool and have no gradient. Set `total_steps` to the
run's steps, or phases end elsewhere. A pass rate is that of one group.
"""

import math
from collections.abc import Sequence

import numpy as np

from rlvr_jax.experience import Curriculum, experience
from rlvr_jax.experience.curricula.shrinking import picks_from_pool
from rlvr_jax.objectives import clipped_objective, rollout_mean_token_mean
from rlvr_jax.types import Method, Recipe, Shown, part
from rlvr_jax.types.hyperparameters import (
    ClipHigh,
    ClipLow,
    Count,
    Epsilon,
    Positive,
    Share,
    TotalSteps,
)


@part
def shrinking_pool(after: Sequence[Count], fractions: Sequence[Share]) -> Curriculum:
    """Picks from a pool that shrinks to its prompts of lowest pass rate after some steps.

    The pool begins with all P prompts. After `after[i]` steps, ⌈fractions[i] · P⌉ prompts stay, by
    the pass rate of each prompt's last group. A step takes the least sampled prompts of the pool. A
    pool smaller than a step is repeated, each copy as a separate group.

    Args:
      after: steps, not falling; of two equal numbers the last counts.
      fractions: of all prompts that stay after each of these steps.
    Metrics: pool_prompts (prompts of the pool), left_prompts (prompts that left it), pool_rate
      (mean pass rate of the last groups).
    """
    if list(after) != sorted(after):
        raise ValueError(f"shrinking_pool: after must not fall, got {tuple(after)}")
    if len(fractions) != len(after):
        raise ValueError(f"shrinking_pool: fractions must be {len(after)} numbers, got {fractions}")
    fraction_at = dict(zip(after, fractions, strict=True))

    def cut(steps, pool, history):
        fraction = fraction_at.get(steps)
        if fraction is None:
            return pool
        return hardest(pool, history.latest, math.ceil(fraction * len(pool)))

    return picks_from_pool(cut)


def hardest(pool: np.ndarray, rates: np.ndarray, number: int) -> np.ndarray:
    """The `number` prompts of a pool with the lowest pass rates, or all if it has fewer; bool [P].

    Ties go to the lower index; prompts of unknown rate (NaN) leave first.
    """
    members = np.flatnonzero(pool)
    left = np.zeros_like(pool)
    left[members[np.argsort(rates[members], kind="stable")][:number]] = True
    return left


def drive(
    total_steps: TotalSteps = 160,
    phases: Sequence[Positive] = (32, 64, 32, 32),
    fractions: Sequence[Share] = (72 / 175, 50 / 175, 25 / 175),
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """Applies GRPO without KL to a pool of prompts that shrinks three times.

    Args:
      total_steps: steps of the run, which the phases divide.
      phases: relative lengths of the phases; the first one is on all prompts.
      fractions: fraction of all prompts in each later phase (k_i / P), one fewer than phases.
    """

    ends = np.ceil(total_steps * np.cumsum(phases) / np.sum(phases)).astype(int)
    return Recipe(
        objective=clipped_objective(
            clip_low, clip_high, epsilon=epsilon, aggregation=rollout_mean_token_mean()
        ),
        experience=experience(curriculum=shrinking_pool(ends[:-1].tolist(), fractions)),
    )


METHOD = Method(
    drive,
    changes="curriculum",
    evidence="reconstruction",
    shown=Shown("brackets", "experience/left_prompts"),
)
