"""RLVE: every environment grows harder as the policy learns it.

"RLVE: Scaling Up Reinforcement Learning for Language Models with Adaptive Verifiable
Environments", https://github.com/Zhiyuan-Zeng/RLVE

    draw    an environment e at random, a level of max(0, h_e - w + 1) … h_e at random, a prompt
    count   the answers at level h_e, of all groups, dropped ones included
    raise   with P · n answers: h_e rises by one if at least τ of them were right; count anew
    R_i     = outcome^β, of graded answers; 0 and 1 stay
    loss    = Σ w_t max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ n_i, over mixed groups
    w_t     = min(exp(old_logp - behaviour_logp), C), truncated importance sampling

Environments are the kinds of the task's prompts and levels their `meta["level"]`; h stays at the
last level that the task has. One draw in w is at level h, so a decision takes about w · P draws of
an environment. The authors' reward of malformed answers is -1; here they are wrong, 0, as the task
says. The cap C is verl's.
"""

from rlvr_jax.experience import adaptive_levels, experience, refill, shape, uniform
from rlvr_jax.objectives import (
    group_normalized,
    objective,
    powered_outcome,
    ppo_clip,
    token_mean,
    truncate_importance,
)
from rlvr_jax.types import Method, Recipe


def rlve(
    window: int = 4,
    min_prompts: int = 8,
    threshold: float = 0.9,
    start: int = 0,
    exponent: float = 5.0,
    max_rounds: int = 3,
    clip_low: float = 0.2,
    clip_high: float = 0.28,
    cap: float = 2.0,
    epsilon: float = 1e-6,
) -> Recipe:
    """Clip-higher on groups of mixed outcomes, of prompts whose level follows the policy.

    Args:
      window: levels that are drawn from (w).
      min_prompts: whose answers a decision needs (P).
      threshold: share of right answers that raises the level (τ).
      start: the level at first (h).
      exponent: of graded outcomes (β).
      max_rounds: batches that are drawn at most to fill one update: 384 prompts for 128.
      clip_low, clip_high: half-widths of the trust region.
      cap: largest weight of a token (C).
      epsilon: added to the standard deviation of a group's rewards.
    """
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            transforms=[truncate_importance(cap)],
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            aggregation=token_mean(),
        ),
        experience=experience(
            curriculum=adaptive_levels(window, min_prompts, threshold, start),
            stages=[refill(uniform, max_rounds), shape(powered_outcome(exponent))],
        ),
    )


METHOD = Method(
    rlve,
    "RLVE: Scaling Up Reinforcement Learning for Language Models with Adaptive Verifiable"
    " Environments",
    "https://github.com/Zhiyuan-Zeng/RLVE",
    changes="curriculum, selection, reward, weight",
    left_out="the 400 environments, the reward of -1 for malformed answers and partial rollouts",
    reports=(
        "from ProRL-1.5B-v2: 3.37 points over six benchmarks with 400 environments; going on with "
        "the old RL 0.49 at thrice the compute"
    ),
    traps=(
        "levels never fall, so a verifier that passes all drives them to the top; only answers at "
        "the highest level count; a hard environment keeps its equal share for ever"
    ),
)
