"""GRPO-RoC: learn from all kinds of failures, but from the cleanest successes alone.

"rStar2-Agent: Agentic Reasoning Technical Report", https://github.com/microsoft/rStar

    1. 2 N responses to each prompt; groups of equal outcomes are dropped
    2. n⁻ = round(wrong · N / 2N) and n⁺ = round(right · N / 2N), half to even, but at least 2 of
       each where there are so many
    3. kept are the n⁺ right ones of lowest penalty, and the first n⁻ wrong ones
    4. GRPO over the N kept: A = (R - mean) / (std + 1e-6), std with n - 1
       loss = Σ max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ n_i, at most -3 A where A < 0

The kept rows are no sample of the policy: the share of right ones is about kept, their quality is
not. In the paper the penalty is the share of failed tool calls plus that of untidy answer tags
(`tag_penalty`), and right answers are drawn with a probability that falls with it; the code takes
the lowest. Here it is what an answer missed of the task's rewards beside the outcome.
"""

from rlvr_jax.experience import experience, select_cleanest
from rlvr_jax.experience.stages.choices.cleanest import Penalty, missed_rewards
from rlvr_jax.objectives import group_normalized, objective, ppo_clip, token_mean
from rlvr_jax.types import Method, Recipe


def grpo_roc(
    drawn: int = 2,
    penalty: Penalty = missed_rewards,
    least_wrong: int = 2,
    least_right: int = 2,
    clip_low: float = 0.2,
    clip_high: float = 0.28,
    dual: float = 3.0,
    epsilon: float = 1e-6,
) -> Recipe:
    """Clip-higher on the token mean, on half of the responses that were drawn.

    Args:
      drawn: responses drawn for each that is kept.
      penalty: (batch, task) -> [B], how untidy a response is.
      least_wrong, least_right: kept of each where there are so many.
      clip_low, clip_high: half-widths of the trust region (ε_low, ε_high).
      dual: bound of the loss of a negative advantage.
      epsilon: added to the standard deviation of a group's rewards.
    """
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            surrogate=ppo_clip(low=clip_low, high=clip_high, dual=dual),
            aggregation=token_mean(),
        ),
        experience=experience(stages=[select_cleanest(drawn, penalty, least_wrong, least_right)]),
    )


METHOD = Method(
    grpo_roc,
    "rStar2-Agent: Agentic Reasoning Technical Report",
    "https://github.com/microsoft/rStar",
    changes="selection, sampling",
    left_out="the penalty for failed tool calls",
    reports="Qwen3-14B base, 510 steps: AIME24 80.6, AIME25 69.8",
    traps=(
        "where the task has no rewards beside the outcome all penalties tie, and the first right "
        "rows are kept; half of what is drawn is thrown away; the released code fails on odd "
        "targets"
    ),
)
