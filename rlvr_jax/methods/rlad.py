"""RLAD: one policy writes what helps with a problem, and solves it with that in sight.

"RLAD: Training LLMs to Discover Abstractions for Solving Reasoning Problems", of which the abstract
was read.

    m abstractions of each problem;  n solutions with each;  some answers without any
    R of an abstraction = mean outcome of its solutions, 0 if it holds the answer
    A_i  = (R_i - mean) / (std + 1e-6) over the abstractions of a problem, and over the solutions
           with one abstraction; answers without an abstraction earn nothing
    loss = mean_t [max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) + β k3(π ‖ π_ref)]

Answers without an abstraction see the KL alone, so that the policy is not paid for passing over
what it was told. m = 4, and with 16 samples n = 4 and 4 more without: all ours. A small n makes
the abstraction's reward mostly noise. Their warm start, by abstractions of a stronger model, is
`imitate_solutions` on them.
"""

from rlvr_jax.experience import discover_abstractions, experience
from rlvr_jax.objectives import (
    group_normalized,
    kl_penalty,
    objective,
    ppo_clip,
    token_mean,
)
from rlvr_jax.types import Method, Recipe


def rlad(
    abstractions: int = 4,
    unaided: int = 4,
    kl_coefficient: float = 0.001,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    epsilon: float = 1e-6,
) -> Recipe:
    """GRPO of who writes abstractions and of who solves with them, which are one policy.

    Args:
      abstractions: of each problem (m); it must divide the samples of a group.
      unaided: for so many solutions with an abstraction there is one answer without.
      kl_coefficient: weight of the KL (β).
      clip_low, clip_high: half-widths of the trust region (ε).
      epsilon: added to the standard deviation of a group's rewards.
    """
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            regularizers=[kl_penalty(kl_coefficient)] if kl_coefficient else [],
            aggregation=token_mean(),
        ),
        experience=experience(stages=[discover_abstractions(abstractions, unaided)]),
    )


METHOD = Method(
    rlad,
    "RLAD: Training LLMs to Discover Abstractions for Solving Reasoning Problems",
    "",
    changes="sampling, reward, guidance",
    evidence="reconstruction",
    left_out="the warm start by abstractions of a stronger model; two sets of weights",
    reports=(
        "more compute for abstractions beats more solutions at large budgets; about 44 % "
        "(relative) over DAPO on AIME25, at second hand"
    ),
    traps=(
        "a leaking abstraction would earn most, here 0, but only the answer's exact words are "
        "found; few solutions make noise of its reward; without a warm start abstractions may all "
        "earn the same"
    ),
)
