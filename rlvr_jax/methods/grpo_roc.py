"""GRPO-RoC: learn from all kinds of failures, but from the cleanest successes alone.

"rStar2-Agent: Agentic Reasoning Technical Report", https://github.com/microsoft/rStar

    1. 2 N responses to each prompt; groups of equal outcomes are dropped
    2. n⁻ = round(wrong · N / 2N) and n⁺ = round(right · N / 2N), half to even, but at least 2 of
       each where there are so many
    3. kept are the n⁺ right ones of lowest penalty, and the first n⁻ wrong ones
    4. GRPO over the N kept: A = (R - mean) / (std + 1e-6), std with n - 1
       loss = Σ max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ n_i, at most -3 A where A < 0

The kept rows are no sample of the policy: the share of right ones is about kept, their quality is
not. With tools the penalty is the share of replies that have the word "error", ½ where nothing was
called, plus that of untidy answer tags (`untidy_tool_use`); in the paper right answers are drawn
with a probability that falls with it, the code takes the lowest. Without tools it is what an answer
missed of the task's rewards beside the outcome.
"""

from collections.abc import Sequence

from rlvr_jax.experience import experience, select_cleanest
from rlvr_jax.experience.stages.choices.cleanest import Penalty, missed_rewards, untidy_tool_use
from rlvr_jax.methods._tools import named_turns
from rlvr_jax.objectives import group_normalized, objective, ppo_clip, token_mean
from rlvr_jax.types import Method, Recipe


def grpo_roc(
    drawn: int = 2,
    penalty: Penalty | None = None,
    least_wrong: int = 2,
    least_right: int = 2,
    clip_low: float = 0.2,
    clip_high: float = 0.28,
    dual: float = 3.0,
    epsilon: float = 1e-6,
    tools: Sequence[str] | None = (),
    style: str = "json",
    max_turns: int = 8,
    reply_tokens: int = 512,
    describe: bool = True,
) -> Recipe:
    """Clip-higher on the token mean, on half of the responses that were drawn.

    Args:
      drawn: responses drawn for each that is kept.
      penalty: (batch, task) -> [B], how untidy a response is; None: that of tools where there are
        any, else what it missed of the task's rewards.
      least_wrong, least_right: kept of each where there are so many.
      clip_low, clip_high: half-widths of the trust region (ε_low, ε_high).
      dual: bound of the loss of a negative advantage.
      epsilon: added to the standard deviation of a group's rewards.
      tools: that may be called, by name (`named_toolbox`); none: a response is one text; None: the
        task has an environment.
      style: how calls are written: "json", "tags" or "fenced".
      max_turns: replies of a response at most.
      reply_tokens: of a reply at most.
      describe: a system message says what tools there are; it needs a chat template.
    """
    draw = named_turns(tools, style, max_turns, reply_tokens, describe)
    penalty = penalty or (untidy_tool_use if draw else missed_rewards)
    stage = select_cleanest(drawn, penalty, least_wrong, least_right)
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            surrogate=ppo_clip(low=clip_low, high=clip_high, dual=dual),
            aggregation=token_mean(),
        ),
        experience=experience(draw=draw, stages=[stage]),
    )


METHOD = Method(
    grpo_roc,
    "rStar2-Agent: Agentic Reasoning Technical Report",
    "https://github.com/microsoft/rStar",
    changes="selection, sampling",
    reports="Qwen3-14B base, 510 steps: AIME24 80.6, AIME25 69.8",
    traps=(
        "without tools and rewards beside the outcome all penalties tie, and the first right rows "
        "are kept; a program that prints the word counts as failed; half of what is drawn is "
        "thrown away; the released code fails on odd targets"
    ),
)
