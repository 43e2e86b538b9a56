"""Fission-GRPO: a failed answer is split off as a new problem: it failed for this reason, go on.

"Robust Tool Use via Fission-GRPO: Learning to Recover from Execution Errors",
https://github.com/zxzadm/Fission-GRPO

    context = prompt, failed answer, feedback; kept in a buffer, newest first
    G' recoveries of each context, by the current policy; the context is never trained
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1, within a group of answers or of recoveries
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) / Σ n_i

A reconstruction: sizes, trigger and clip are ours. With `tools` wrong answers that were told an
error are gone on from, behind the tool's own words, where the paper has an error simulator write
them; without tools all wrong ones are, behind one sentence. `recover(feedback=…)` takes any.
Recoveries are on-policy, however old the failed answer is. Groups of recoveries whose outcomes are
equal are dropped.
"""

from collections.abc import Sequence

from rlvr_jax.experience import experience, recover
from rlvr_jax.experience.stages.rounds.recover import told_wrong
from rlvr_jax.methods._tools import named_turns
from rlvr_jax.objectives import group_normalized, objective, ppo_clip, token_mean
from rlvr_jax.types import Method, Recipe


def fission_grpo(
    per_prompt: int = 2,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    epsilon: float = 1e-6,
    tools: Sequence[str] | None = (),
    style: str = "json",
    max_turns: int = 8,
    reply_tokens: int = 512,
    describe: bool = True,
) -> Recipe:
    """GRPO on answers, and on recoveries from failed ones.

    Args:
      per_prompt: failed answers of a prompt that are kept at most.
      clip_low, clip_high: half-widths of the trust region (ε).
      epsilon: added to the standard deviation of a group's rewards.
      tools: that may be called, by name (`named_toolbox`); none: a response is one text; None: the
        task has an environment.
      style: how calls are written: "json", "tags" or "fenced".
      max_turns: replies of a response at most.
      reply_tokens: of a reply at most.
      describe: a system message says what tools there are; it needs a chat template.
    """
    draw = named_turns(tools, style, max_turns, reply_tokens, describe)
    feedback = None if draw else told_wrong
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            aggregation=token_mean(),
        ),
        experience=experience(draw=draw, stages=[recover(feedback, per_prompt=per_prompt)]),
    )


METHOD = Method(
    fission_grpo,
    "Robust Tool Use via Fission-GRPO: Learning to Recover from Execution Errors",
    "https://github.com/zxzadm/Fission-GRPO",
    changes="sampling",
    evidence="reconstruction",
    left_out="the error simulator, and the reward of calls (`call_reward`, `trained_reward`)",
    reports="Qwen3-8B on BFCL v4 multi-turn: 42.75 to 46.75; recovery from errors 5.7 points up",
    traps=(
        "without tools the feedback is one fixed sentence that knows nothing of the error; a "
        "failed answer counts in the budget of its recoveries, so long ones leave no room and are "
        "not kept"
    ),
)
