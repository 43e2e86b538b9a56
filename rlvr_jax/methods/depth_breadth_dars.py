"""DARS: more rollouts for hard prompts instead of more weight.

"Depth-Breadth Synergy in RLVR: Unlocking LLM Reasoning Gains with Adaptive Exploration",
https://github.com/yangzhch6/DARS

    A_i  = R_i - mean over all rollouts of the prompt
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ n_i, over mixed groups

The advantages of a prompt add up to N · 2u(1 - u), little for a hard one. After N rollouts, of
which a share u is right, `extra_rollouts` says how many more to draw; all of them make the group,
whose size then differs from prompt to prompt, and groups that are all right or all wrong are
dropped. N is 8, the limit 32 (equal treatment) or 64 (by hardness). DARS-B takes one full-batch
step on 3072 prompts, twice. The clip is ours. In the authors' code the second call samples with the
validation switch set: check that the temperature is that of training.
"""

from rlvr_jax.objectives.advantages.group_relative import group_centered
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.selection import Selection, mixed_outcomes
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.types import Method, Recipe


def depth_breadth_dars(
    clip_low: float = 0.2, clip_high: float = 0.28, max_rounds: int = 1
) -> Recipe:
    """Centered advantages and clip-higher on the token mean of groups of mixed outcomes.

    Args:
      clip_low, clip_high: half-widths of the trust region.
      max_rounds: batches that are drawn at most to fill one update; 1 drops without drawing again.
    """
    return Recipe(
        objective=objective(
            advantage=group_centered(),
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            aggregation=token_mean(),
        ),
        selection=Selection(mixed_outcomes, max_rounds),
    )


METHOD = Method(
    depth_breadth_dars,
    "Depth-Breadth Synergy in RLVR: Unlocking LLM Reasoning Gains with Adaptive Exploration",
    "https://github.com/yangzhch6/DARS",
    changes="advantage, selection, sampling",
    left_out="drawing the extra rollouts",
)
