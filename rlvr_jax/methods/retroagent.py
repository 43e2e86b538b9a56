"""RetroAgent: an episode is also paid for coming further than its task has ever been solved.

"RetroAgent: From Solving to Evolving via Retrospective Dual Intrinsic Feedback",
https://github.com/zhangxy-2019/RetroAgent

    φ    = 1 if right, else the share of its sub-tasks that the response says it has done
    R_i  = outcome + c max(0, φ_i - Φ(prompt)),  Φ ← max(Φ, share of right responses)
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1;  loss = Σ [PPO clip + β k3] / Σ n_i

What runs in the released code is the running maximum; the moving average of the paper is commented
out there. The share is a reward of the task (`column`), theirs of a reflection that the policy
writes after the episode. Lessons that are shown to half of each group (`lesson_scores`,
`updated_utility`) are not part of this. With `tools`, or the task's environment, a response is an
episode of turns.
"""

from collections.abc import Sequence

from rlvr_jax.experience import experience, shape
from rlvr_jax.methods._tools import named_turns
from rlvr_jax.objectives import (
    beyond_best,
    group_normalized,
    kl_penalty,
    objective,
    ppo_clip,
    token_mean,
)
from rlvr_jax.types import Method, Recipe


def retroagent(
    column: int = 0,
    coefficient: float = 1.0,
    kl_coefficient: float = 0.01,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    epsilon: float = 1e-6,
    tools: Sequence[str] | None = (),
    style: str = "json",
    max_turns: int = 8,
    reply_tokens: int = 512,
    describe: bool = True,
) -> Recipe:
    """GRPO on the token mean, on outcomes and progress beyond the best so far.

    Args:
      column: of the task's rewards, what the response says it has done, in [0, 1].
      coefficient: of the progress (c).
      kl_coefficient: weight of the KL (β); with 0 no reference is needed.
      clip_low, clip_high: half-widths of the trust region.
      epsilon: added to the standard deviation of a group's rewards.
      tools: that may be called, by name (`named_toolbox`); none: a response is one text; None: the
        task has an environment.
      style: how calls are written: "json", "tags" or "fenced".
      max_turns: replies of a response at most.
      reply_tokens: of a reply at most.
      describe: a system message says what tools there are; it needs a chat template.
    """
    draw = named_turns(tools, style, max_turns, reply_tokens, describe)
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            regularizers=[kl_penalty(kl_coefficient)] if kl_coefficient else [],
            aggregation=token_mean(),
        ),
        experience=experience(draw=draw, stages=[shape(beyond_best(column, coefficient))]),
    )


METHOD = Method(
    retroagent,
    "RetroAgent: From Solving to Evolving via Retrospective Dual Intrinsic Feedback",
    "https://github.com/zhangxy-2019/RetroAgent",
    changes="sampling, reward",
    left_out="the reflection after an episode; the memory of lessons",
    reports="over GRPO: ALFWorld 18.3, WebShop 15.4, Sokoban 27.1, MineSweeper 8.9 points",
    traps=(
        "the share is the response's own claim, so self-praise pays on prompts that stay "
        "unsolved; all-wrong groups learn from it alone; the moving average and centring in the "
        "code's comments do not run"
    ),
)
