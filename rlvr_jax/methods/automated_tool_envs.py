"""FTRL: a turn is paid for how many of its tool calls solve something that was open.

"Feedback-Driven Tool-Use Improvements in Large Language Models via Automated Build Environments",
https://github.com/bytedance/FTRL

    R    = 2 s / (n + 1), n calls of which s solve an open answer; or s / n, s, s² / n
    without calls: empty -½, broken tags -0.3, the final answer 1 / (1 + u), u open, else ½ if u = 0
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = Σ [PPO clip + β k3] / Σ n_i - c · mean entropy

Training is on single turns from stored states. n, s and what a turn without calls earns are rewards
of the task (`columns`): `counted_calls` and `turn_without_calls` make them. Several right calls in
a turn pay more than 1. The building of environments is not part of it.
"""

from collections.abc import Sequence

from rlvr_jax.experience import experience, shape
from rlvr_jax.objectives import (
    call_f1,
    entropy_bonus,
    group_normalized,
    kl_penalty,
    objective,
    ppo_clip,
    token_mean,
    useful_calls,
)
from rlvr_jax.objectives.rewards.tool_calls import CallScore
from rlvr_jax.types import Method, Recipe


def automated_tool_envs(
    score: CallScore = call_f1,
    columns: Sequence[int] = (0, 1, 2),
    kl_coefficient: float = 0.001,
    entropy_coefficient: float = 0.001,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    epsilon: float = 1e-6,
) -> Recipe:
    """GRPO on the token mean, on useful calls of tools.

    Args:
      score: of calls and solved answers: `call_f1`, `call_precision`, `call_rate` or
        `call_rate_precision`.
      columns: of the task's rewards: calls, solved, reward of a turn without calls.
      kl_coefficient: weight of the KL (β); with 0 no reference is needed.
      entropy_coefficient: weight of the entropy (c).
      clip_low, clip_high: half-widths of the trust region.
      epsilon: added to the standard deviation of a group's rewards.
    """
    terms = [kl_penalty(kl_coefficient)] if kl_coefficient else []
    terms += [entropy_bonus(entropy_coefficient)] if entropy_coefficient else []
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            regularizers=terms,
            aggregation=token_mean(),
        ),
        experience=experience(stages=[shape(useful_calls(*columns, score=score))]),
    )


METHOD = Method(
    automated_tool_envs,
    "Feedback-Driven Tool-Use Improvements in Large Language Models via Automated Build"
    " Environments",
    "https://github.com/bytedance/FTRL",
    changes="reward",
    left_out="the building of environments",
    reports=(
        "better use of tools at several model sizes, general abilities kept (abstract, no numbers)"
    ),
    traps=(
        "its F1 is of s/n and s, not of a true recall: two right calls in a turn earn 1.33; the "
        "final answer too early earns 1 / (1 + u); the task must bring the three rewards of "
        "`columns`"
    ),
)
