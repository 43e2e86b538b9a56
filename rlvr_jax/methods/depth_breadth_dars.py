"""DARS: more rollouts for hard prompts instead of more weight.

"Depth-Breadth Synergy in RLVR: Unlocking LLM Reasoning Gains with Adaptive Exploration",
https://github.com/yangzhch6/DARS

    1. N responses to each prompt, of which a share u is right
    2. ΔN more for prompts with u < ½: S = 2u(1 - u), u = 0.5/N if none is right,
       equal treatment   ΔN = ⌈(N/2 - N S) / S⌉
       by hardness       ΔN = ⌈(2(1 - u) N/2 - N S) / S⌉, at most N_max - N
    3. A_i  = R_i - mean over all N + ΔN rollouts of the prompt
       loss = Σ max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ n_i, over mixed groups

The advantages of a prompt add up to N · 2u(1 - u), little for a hard one. Groups differ in size,
and those that are all right or all wrong are dropped: an unlucky prompt gets the most rollouts, and
if these are wrong, too, all are wasted. N is 8 and N_max 32 (equal treatment) or 64 (by hardness:
give `most=8`). DARS-B takes one full-batch step on 3072 prompts, twice, at a learning rate of 5e-6;
these are settings of a run. The clip is ours. In the authors' code the second call samples with the
validation switch set; here both are drawn at the temperature of training.
"""

from rlvr_jax.experience import budget_for_hard, draw_more, experience, refill, uniform
from rlvr_jax.objectives.advantages.group_relative import group_centered
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.types import Method, Recipe


def depth_breadth_dars(
    by_hardness: bool = False,
    most: float = 4.0,
    clip_low: float = 0.2,
    clip_high: float = 0.28,
) -> Recipe:
    """Centered advantages and clip-higher on the token mean of groups of mixed outcomes.

    Args:
      by_hardness: harder prompts get more than equal treatment.
      most: rollouts of a prompt at most (N_max), as a multiple of the first ones.
      clip_low, clip_high: half-widths of the trust region.
    """
    return Recipe(
        objective=objective(
            advantage=group_centered(),
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            aggregation=token_mean(),
        ),
        experience=experience(
            stages=[
                draw_more(budget_for_hard(by_hardness), most),
                # Further prompts would come without their extra rollouts.
                refill(uniform, rounds=1),
            ]
        ),
    )


METHOD = Method(
    depth_breadth_dars,
    "Depth-Breadth Synergy in RLVR: Unlocking LLM Reasoning Gains with Adaptive Exploration",
    "https://github.com/yangzhch6/DARS",
    changes="advantage, selection, sampling",
    reports=(
        "Qwen2.5-Math 1.5B and 7B, Llama 8B: pass@k rises and pass@1 holds; with very large "
        "batches both rise (abstract)"
    ),
    traps=(
        "an unlucky prompt draws the most, all in vain if it stays unsolved; hard prompts have "
        "more rows and so more weight in the token mean; `by_hardness` wants `most=8`"
    ),
)
