"""CLPO: what is hard is written simpler, what is medium differently, and asked in the same step.

"CLPO: Curriculum Learning meets Policy Optimization for LLM Reasoning",
https://github.com/csuking/CLPO (its first version)

    band  hard: accuracy ≤ 0.3; medium: ≤ 0.7; easy: above
    1. the policy, shown problem and answer, writes hard ones simpler, medium ones differently
    2. N rollouts of each of these; groups of mixed outcomes are kept, of both kinds
    3. loss = mean_t [max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) + β s_band k3(π ‖ π_ref)], s = ½ if hard

What was written has the band of its prompt, and earns nothing: it is not learned from. With N = 4
the bands are {0, ¼}, {½}, {¾, 1}. A problem that gives its answer away is always solved, and
dropped. The second version of the paper also trains who writes; its formula is not known.
"""

from rlvr_jax.experience import experience, rewrite_prompts
from rlvr_jax.experience.stages.problems.rewrite import HARD
from rlvr_jax.objectives import (
    group_normalized,
    k3_clamped,
    kl_penalty,
    objective,
    ppo_clip,
    scale_of_cell,
    token_mean,
)
from rlvr_jax.types import Method, Recipe


def clpo(
    hard: float = 0.3,
    medium: float = 0.7,
    kl_coefficient: float = 0.001,
    hard_scale: float = 0.5,
    other_scale: float = 1.0,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    epsilon: float = 1e-6,
) -> Recipe:
    """GRPO on prompts and on what the policy makes of them, with a weaker KL on hard ones.

    Args:
      hard, medium: accuracies up to which a prompt is hard, and medium.
      kl_coefficient: weight of the KL (β).
      hard_scale, other_scale: factors on it for rows of hard prompts, and for the others (s).
      clip_low, clip_high: half-widths of the trust region (ε).
      epsilon: added to the standard deviation of a group's rewards.
    """
    scale = scale_of_cell({HARD: hard_scale}, other_scale)
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            regularizers=[kl_penalty(kl_coefficient, k3_clamped, scale, reads={"cell"})],
            aggregation=token_mean(),
        ),
        experience=experience(stages=[rewrite_prompts(hard, medium)]),
    )


METHOD = Method(
    clpo,
    "CLPO: Curriculum Learning meets Policy Optimization for LLM Reasoning",
    "https://github.com/csuking/CLPO",
    changes="regularizer, sampling, selection",
    left_out="training who rewrites, of the second version",
    reports=(
        "Qwen3-8B, mean of eight benchmarks: 73.73 (Critique-GRPO 66.77, DAPO 64.50; their README)"
    ),
    traps=(
        "with four rollouts the bands are {0, ¼}, {½}, {¾, 1}; a rewritten problem that leaks a "
        "part of the answer is trained on; in the released code an error in the labels switches "
        "the scale off unseen"
    ),
)
