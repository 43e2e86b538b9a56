"""Heimdall: a verifier that thinks is trained on whether its verdict is the truth.

"Heimdall: test-time scaling on the generative verification", https://arxiv.org/abs/2504.10337

    R_i  = +1 if the verdict is the truth, else -1; one that cannot be read is wrong
    PPO with a critic: Â by GAE, whitened; loss = Σ PPO clip / Σ n_i

The prompts of the task are pairs of a problem and a solution, its outcome says whether the verdict
was right. Problems whose solutions are all right or all wrong should not be among them: the verdict
could be read off the problem. To choose among N answers with M verdicts each (`choose` with the
rule `lower_bound`): r_a - α ln(N M) / (N_a M + 1), a lower confidence bound with α = 0.1
recollected. The constants of PPO were not found; they are those of `ppo`.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.experience import experience, shape
from rlvr_jax.objectives import (
    critic_of,
    generalized_advantage,
    objective,
    ppo_clip,
    signed_outcome,
    token_mean,
    total,
    whitened,
)
from rlvr_jax.types import Method, Recipe


def verdict_reward(verdict: Float[Array, "..."], truth: Float[Array, "..."]) -> Float[Array, "..."]:
    """+1 where the verdict is the truth, -1 elsewhere; one that cannot be read (NaN) is wrong."""
    return jnp.where(verdict == truth, 1.0, -1.0).astype(truth.dtype)


def heimdall(
    discount: float = 1.0,
    trace_decay: float = 1.0,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    value_clip: float = 0.2,
) -> Recipe:
    """PPO with a critic, on verdicts that are worth +1 or -1.

    Args:
      discount: of later rewards, per token (γ).
      trace_decay: of later errors of the critic, per token (λ).
      clip_low, clip_high: half-widths of the trust region.
      value_clip: half-width of the critic's.
    """
    estimator = generalized_advantage(discount, trace_decay)
    return Recipe(
        objective=objective(
            advantage=whitened(estimator),
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            aggregation=token_mean(),
        ),
        experience=experience(stages=[shape(total({"verdict": signed_outcome}))]),
        critic=critic_of(estimator, value_clip),
    )


METHOD = Method(
    heimdall,
    "Heimdall: test-time scaling on the generative verification",
    "https://arxiv.org/abs/2504.10337",
    changes="reward",
    evidence="reconstruction",
    left_out="the pairs of problems and solutions",
    reports=(
        "verdicts on competition maths: 62.5 to 94.5 % right; AIME25, R1-Distill-Qwen-32B as "
        "solver: 54.2 to 70.0 at 16 times the budget"
    ),
    traps=(
        "pairs out of balance pay the verdict of the majority; a problem whose solutions are all "
        "right or all wrong gives the verdict away"
    ),
)
