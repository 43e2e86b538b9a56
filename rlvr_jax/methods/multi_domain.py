"""Multi-domain mixing: kinds of prompts in one run, level by level, with a reference that moves on.

"Can One Domain Help Others? A Data-Centric Study on Multi-Domain Reasoning via Reinforcement
Learning", https://github.com/Leey21/A-Data-Centric-Study

    levels   175 steps on the prompts of each size, in order; after each the actor becomes the
             reference, and the optimizer begins anew
    mixture  the kinds of a task, shuffled, each with its verifier; no weights, no normalisation
    loss     = GRPO's clip on the token mean + β k3(π ‖ π_ref)

`per_level=0` is the mixture alone. A mixture is a task whose prompts have several kinds, and curves
are per kind. The rewards that the study compares for puzzles of N blanks are
`rlvr_jax.tasks.rewards.blanks_reward`. β is verl's 0.001.
"""

from rlvr_jax.experience import experience, one_level_at_a_time
from rlvr_jax.objectives import (
    group_normalized,
    kl_penalty,
    objective,
    ppo_clip,
    token_mean,
)
from rlvr_jax.types import Method, Recipe


def multi_domain(
    per_level: int = 175,
    refresh: bool = True,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    kl_coefficient: float = 0.001,
    epsilon: float = 1e-6,
) -> Recipe:
    """GRPO on one level of the task after the other, from a new reference each time.

    Args:
      per_level: steps of each level; 0: all levels mixed.
      refresh: reference and optimizer are renewed between levels.
      clip_low, clip_high: half-widths of the trust region (ε).
      kl_coefficient: weight of the KL (β); with 0 no reference is needed.
      epsilon: added to the standard deviation of a group's rewards.
    """
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            regularizers=[kl_penalty(kl_coefficient)] if kl_coefficient else [],
            aggregation=token_mean(),
        ),
        experience=experience(one_level_at_a_time(per_level, refresh) if per_level else None),
    )


METHOD = Method(
    multi_domain,
    "Can One Domain Help Others? A Data-Centric Study on Multi-Domain Reasoning via Reinforcement"
    " Learning",
    "https://github.com/Leey21/A-Data-Centric-Study",
    changes="curriculum, reward",
    reports=(
        "Qwen2.5-7B base, mean of all sets: 31.5 to 56.6 with maths, code and puzzles together, "
        "45.1 with maths alone; Knights and Knaves 94.3 mixed, 97.3 in levels, 99.7 with refresh"
    ),
    traps=(
        "another template at test time costs more than any mixture; 1 or 0 for a whole puzzle is "
        "too sparse where the share of right blanks works; a refresh restarts warm-up, too"
    ),
)
