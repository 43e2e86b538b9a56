"""Fission-GRPO: a failed answer is split off as a new problem: it failed for this reason, go on.

"Robust Tool Use via Fission-GRPO: Learning to Recover from Execution Errors",
https://github.com/zxzadm/Fission-GRPO

    context = prompt, failed answer, feedback; kept in a buffer, newest first
    G' recoveries of each context, by the current policy; the context is never trained
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1, within a group of answers or of recoveries
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) / Σ n_i

A reconstruction: sizes, trigger and clip are ours, and the feedback is one sentence, where the
paper has an error simulator write it; `recover(feedback=…)` takes any. Recoveries are on-policy,
however old the failed answer is. Groups of recoveries whose outcomes are equal are dropped.
"""

from rlvr_jax.experience import experience, recover
from rlvr_jax.objectives import group_normalized, objective, ppo_clip, token_mean
from rlvr_jax.types import Method, Recipe


def fission_grpo(
    per_prompt: int = 2, clip_low: float = 0.2, clip_high: float = 0.2, epsilon: float = 1e-6
) -> Recipe:
    """GRPO on answers, and on recoveries from failed ones.

    Args:
      per_prompt: failed answers of a prompt that are kept at most.
      clip_low, clip_high: half-widths of the trust region (ε).
      epsilon: added to the standard deviation of a group's rewards.
    """
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            aggregation=token_mean(),
        ),
        experience=experience(stages=[recover(per_prompt=per_prompt)]),
    )


METHOD = Method(
    fission_grpo,
    "Robust Tool Use via Fission-GRPO: Learning to Recover from Execution Errors",
    "https://github.com/zxzadm/Fission-GRPO",
    changes="sampling",
    evidence="reconstruction",
    left_out="tools and their errors, the error simulator, and the reward of calls"
    " (`call_reward`, `trained_reward`)",
    reports="Qwen3-8B on BFCL v4 multi-turn: 42.75 to 46.75; recovery from errors 5.7 points up",
    traps=(
        "by default the feedback is one fixed sentence that knows nothing of the error; a failed "
        "answer counts in the budget of its recoveries, so long ones leave no room and are not "
        "kept"
    ),
)
