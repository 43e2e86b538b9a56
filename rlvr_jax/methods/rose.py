"""ROSE: rollouts branch where likely words mean different things.

"ROSE: Reinforced Efficient Reasoning via Semantically Diverse Exploration",
https://github.com/ZiqiZhao1/ROSE-rl

    M    = -F H, H the entropy and F = Σ_{i≠j} p_i p_j cos(e_i, e_j) of the 20 likeliest tokens
    a row begins at the prompt with probability ε, else where M is largest in the rows before it
    A_t  = V(k₁) - V(k₀) between branch points k₀ ≤ t < k₁, R - V(k₀) behind the last one
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) / (B L) + β k3

V(k) is the mean reward of the prompt's rows with a branch point at k; the pool is by position, not
by node, as in the authors' code. A length penalty λ is off in their script. Prefixes are trained in
every row that has them. Where cosines are all positive the largest M is 0, at certain tokens: look
at `branch_position`. Their verl divides by L alone, so that its loss is B times ours. ε is 0.5,
whereas 1 (no branches) is the default of the code.
"""

from rlvr_jax.experience import branch_at_best, experience
from rlvr_jax.objectives import (
    between_branch_points,
    fixed_length_mean,
    kl_penalty,
    objective,
    ppo_clip,
)
from rlvr_jax.types import Method, Recipe


def rose(
    fresh: float = 0.5,
    top: int = 20,
    length_penalty: float = 0.0,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    dual: float = 3.0,
    kl_coefficient: float = 0.001,
    max_length: int = 8192,
) -> Recipe:
    """Credit between branch points on rows that branch where the policy wavers between meanings.

    Args:
      fresh: probability that a row begins at the prompt (ε).
      top: likeliest tokens that the metric is of.
      length_penalty: λ; 0: off.
      clip_low, clip_high: half-widths of the trust region (ε_low, ε_high).
      dual: bound of the loss where A < 0, in units of -A.
      kl_coefficient: weight of the KL (β); with 0 no reference is needed.
      max_length: budget of response tokens (L).
    """
    return Recipe(
        objective=objective(
            advantage=between_branch_points(length_penalty),
            surrogate=ppo_clip(low=clip_low, high=clip_high, dual=dual),
            regularizers=[kl_penalty(kl_coefficient)] if kl_coefficient else [],
            aggregation=fixed_length_mean(max_length),
        ),
        experience=experience(draw=branch_at_best(fresh, top=top)),
    )


METHOD = Method(
    rose,
    "Reinforced Efficient Reasoning via Semantically Diverse Exploration",
    "https://github.com/ZiqiZhao1/ROSE-rl",
    changes="sampling, advantage, aggregation, regularizer",
    reports="Qwen and Llama, maths: above GRPO and tree methods with shorter answers (no number)",
    traps=(
        "values pool branches at one position, whatever their parent; where cosines are positive "
        "it branches at sure tokens; rewards of -1 count as right in the length term; one shared "
        "prefix trains several times"
    ),
)
