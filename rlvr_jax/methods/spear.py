"""SPEAR: a bonus for tool calls that fades, and a replay of good answers that comes up.

"Learn the Ropes, Then Trust the Wins: Self-imitation with Progressive Exploration for Agentic
Reinforcement Learning", https://github.com/TencentYoutuResearch/SPEAR

    R      = ±1 + μ(s) min(0.1 calls, 1), μ falls by a cosine to 0 at step 200
    A_i    = R_i - mean of the group;  b = median of the last group means
    replay once more than 1.5 × 32 kept rows have R > b: at most 32 of them, with A = R - b > 0,
           times γ(s), which rises by a cosine to 1 at step 300
    loss   = mean_i (1/T) Σ_t max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)), T the budget, without a
           few tokens of high covariance: 0.02 % of the new ones, 2 % of the replayed ones

Kept are rows that were better than their group, for five steps, with the old log-probs of when they
were drawn; where there are calls, rows with one. Calls are a reward of the task (`calls`), or where
rows call `tools` the replies that they have read. In the authors' branch for mathematics the
thresholds for replayed tokens are commented out, and their loop over small batches replays the last
new one; their sum is not divided by the rows.
"""

from collections.abc import Callable, Sequence

import numpy as np

from rlvr_jax.experience import experience, replay_good, shape
from rlvr_jax.experience.grades import component_rewards
from rlvr_jax.methods._tools import named_turns
from rlvr_jax.objectives import (
    bounded,
    by_stored,
    call_bonus,
    drop_high_covariance,
    falling_cosine,
    group_centered,
    objective,
    over_steps,
    ppo_clip,
    random_choice,
    replies_read,
    reply_bonus,
    rising_cosine,
    rollout_mean_fixed_length,
    signed_outcome,
    total,
)
from rlvr_jax.types import Method, Recipe


def spear(
    max_length: int = 4096,
    calls: int | None = None,
    bonus: float = 0.1,
    bonus_cap: float = 1.0,
    bonus_steps: int = 200,
    replay_rows: int = 32,
    replay_age: int = 5,
    replay_groups: int = 32,
    replay_steps: int = 300,
    fraction: float = 2e-4,
    covariance_low: float = 1.0,
    covariance_high: float = 5.0,
    replay_fraction: float = 0.02,
    replay_covariance_low: float = 1.0,
    replay_covariance_high: float = 40.0,
    clip_low: float = 0.2,
    clip_high: float = 0.28,
    choice: Callable = random_choice,
    tools: Sequence[str] | None = (),
    style: str = "json",
    max_turns: int = 8,
    reply_tokens: int = 512,
    describe: bool = True,
) -> Recipe:
    """The clipped loss on group-centered rewards, with a bonus, a replay and Clip-Cov.

    Args:
      max_length: budget of response tokens (T).
      calls: of the task's rewards, the number of tool calls; None: the replies that a row has read,
        without tools its turns.
      bonus, bonus_cap: of a call, and of all.
      bonus_steps: at which the bonus is gone.
      replay_rows: of an update of replayed answers at most.
      replay_age: steps that an answer is kept.
      replay_groups: whose mean rewards make the usual one (b).
      replay_steps: at which replayed answers count in full.
      fraction, covariance_low, covariance_high: of Clip-Cov on new tokens.
      replay_fraction, replay_covariance_low, replay_covariance_high: on replayed ones.
      clip_low, clip_high: half-widths of the trust region.
      choice: which of the eligible tokens are dropped.
      tools: that may be called, by name (`named_toolbox`); none: a response is one text; None: the
        task has an environment.
      style: how calls are written: "json", "tags" or "fenced".
      max_turns: replies of a response at most.
      reply_tokens: of a reply at most.
      describe: a system message says what tools there are; it needs a chat template.
    """
    draw = named_turns(tools, style, max_turns, reply_tokens, describe)

    def called(batch, task):
        if calls is not None:
            return component_rewards(batch, task)[:, calls] > 0
        return np.asarray(replies_read(batch.rollouts)) > 0

    earned = reply_bonus(bonus) if draw and calls is None else call_bonus(bonus, calls)
    reward = {
        "outcome": signed_outcome,
        "calls": over_steps(bounded(earned, high=bonus_cap), falling_cosine(bonus_steps)),
    }
    return Recipe(
        objective=objective(
            advantage=group_centered(),
            transforms=[
                by_stored(
                    drop_high_covariance(fraction, covariance_low, covariance_high, choice),
                    drop_high_covariance(
                        replay_fraction, replay_covariance_low, replay_covariance_high, choice
                    ),
                )
            ],
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            aggregation=rollout_mean_fixed_length(max_length),
        ),
        experience=experience(
            draw=draw,
            stages=[
                shape(total(reward)),
                replay_good(
                    replay_rows,
                    replay_age,
                    replay_groups,
                    rising_cosine(replay_steps),
                    called if draw or calls is not None else None,
                ),
            ],
        ),
    )


METHOD = Method(
    spear,
    "Learn the Ropes, Then Trust the Wins: Self-imitation with Progressive Exploration for Agentic"
    " Reinforcement Learning",
    "https://github.com/TencentYoutuResearch/SPEAR",
    changes="sampling, reward, weight, selection",
    left_out="filters of unreadable answers and of groups of little spread",
    reports=(
        "above GRPO, GiGPO and Dr.BoT on ALFWorld, WebShop and AIME24/25 with Qwen2.5 (no number)"
    ),
    traps=(
        "replay counts nothing at step 0 and in full at 300, the bonus ends at 200: set both for "
        "short runs; stored rows wait for 48 above the median; the maths branch never reads its "
        "replay thresholds"
    ),
)
