"""DRIVE: training goes on with ever fewer prompts, those that the policy solves most rarely.

"DRIVE: Data Curation Best Practices for Reinforcement Learning with Verifiable Reward in
Competitive Code Generation", https://arxiv.org/abs/2511.06307

    pool_0 = all prompts;  pool_i = the k_i prompts of pool_(i-1) of lowest pass rate
    loss   = mean_i (1/n_i) Σ_t max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)), A GRPO's

The first phase is the paper's stage 1, on all prompts; the others are its stage 2, on 72, 50 and 25
of 175 prompts for 64, 32 and 32 steps. A prompt that is never solved stays in the pool and teaches
nothing: with `--dynamic-sampling` such groups are dropped from the batch, and not from the pool.

The paper draws again to find pass rates, by a budget that is not told; we take those of each
prompt's last visit, which are there. Its two stages are two data sets, with 8 and 64 rollouts and
24 K and 32 K tokens; here they are one, with the run's own sizes. GRPO's clip is not told either.
Stage 1 matters: from the small set alone their run collapses. The last pool is seen again and
again, so watch the held-out rates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rlvr_jax.experience import experience
from rlvr_jax.experience.curricula.shrinking import picks_from_pool
from rlvr_jax.experience.parts import Curriculum
from rlvr_jax.objectives import group_normalized, rollout_mean_token_mean
from rlvr_jax.objectives.arguments import check_count, check_positive
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Count, Epsilon, Share
from rlvr_jax.types.parts import part


def hardest(pool: np.ndarray, rates: np.ndarray, number: int) -> np.ndarray:
    """The pool without all but its `number` prompts of lowest pass rate, bool [P].

    Equal ones stay by their order; a pool that is smaller stays as it is.

    Args:
      pool: bool [P].
      rates: [P]; NaN, which is not known, goes first.
    """
    members = np.flatnonzero(pool)
    left = np.zeros_like(pool)
    left[members[np.argsort(rates[members], kind="stable")][:number]] = True
    return left


@part
def shrinking_pool(after: Sequence[Count], shares: Sequence[Share]) -> Curriculum:
    """Picks from a pool that is cut to its prompts of lowest pass rate after some steps.

    It begins with all P prompts; after `after[i]` steps ⌈shares[i] · P⌉ of the pool stay, by the
    pass rate of each prompt's last visit, which costs no further draw. Prompts that were not
    visited are the first to go. A step takes the least visited prompts of the pool; if these are
    fewer than it asks, they are asked several times, each time as a group of its own.

    Args:
      after: steps, none below the one before, at least 1; of cuts after one step the last counts.
      shares: in (0, 1], as many.
    Metrics: pool_prompts, pool_rate (mean pass rate of its last visits).
    Raises:
      ValueError: steps that fall, shares outside (0, 1], or another number of them.
    """
    if list(after) != sorted(after):
        raise ValueError(f"shrinking_pool: after must not fall, got {tuple(after)}")
    if len(shares) != len(after):
        raise ValueError(f"shrinking_pool: shares must be {len(after)} numbers, got {shares}")
    share_at = dict(zip(after, shares, strict=True))

    def cut(steps, pool, history):
        share = share_at.get(steps)
        if share is None:
            return pool
        return hardest(pool, history.latest, math.ceil(share * len(pool)))

    return picks_from_pool(cut)


def drive(
    total_steps: int = 160,
    phases: Sequence[float] = (32, 64, 32, 32),
    shares: Sequence[float] = (72 / 175, 50 / 175, 25 / 175),
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """GRPO without KL on a pool of prompts that shrinks three times.

    Args:
      total_steps: of the run, over which the phases are spread.
      phases: their lengths in relation to each other, the one on all prompts first.
      shares: of all prompts that each later phase has (k_i), one fewer than phases.
    Raises:
      ValueError: a phase of no length, total_steps below 1, or another number of shares.
    """
    for phase in phases:
        check_positive("drive", phases=phase)
    check_count(1, "drive", total_steps=total_steps)
    ends = np.ceil(total_steps * np.cumsum(phases) / np.sum(phases)).astype(int)
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low,
            clip_high=clip_high,
            advantage=group_normalized(epsilon),
            aggregation=rollout_mean_token_mean(),
        ),
        experience=experience(curriculum=shrinking_pool(ends[:-1].tolist(), shares)),
    )


METHOD = Method(
    drive,
    "DRIVE: Data Curation Best Practices for Reinforcement Learning with Verifiable Reward in"
    " Competitive Code Generation",
    "https://arxiv.org/abs/2511.06307",
    changes="curriculum",
    evidence="reconstruction",
    left_out="fine-tuning on hard prompts before; other rollouts and budgets in the first phase",
    reports=(
        "Qwen2.5-32B from SFT to the end: Codeforces weekly 0.115 to 0.182, LeetCode weekly 0.578 "
        "to 0.653; LiveCodeBench V6 is its training pool"
    ),
    traps=(
        "prompts that are never solved stay to the last and teach nothing; give total_steps the "
        "run's, else phases end elsewhere; pass rates are of one visit with the run's few rollouts"
    ),
)
