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
    signed_outcome,
    total,
    whitened,
)
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Discount, TraceDecay


def verdict_reward(verdict: Float[Array, "..."], truth: Float[Array, "..."]) -> Float[Array, "..."]:
    """+1 where the verdict is the truth, -1 elsewhere; one that cannot be read (NaN) is wrong."""
    return jnp.where(verdict == truth, 1.0, -1.0).astype(truth.dtype)


def heimdall(
    discount: Discount = 1.0,
    trace_decay: TraceDecay = 1.0,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    value_clip: float = 0.2,
) -> Recipe:
    """PPO with a critic, on verdicts that are worth +1 or -1.

    Args:
      value_clip: half-width of the critic's.
    """
    estimator = generalized_advantage(discount, trace_decay)
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low, clip_high=clip_high, advantage=whitened(estimator)
        ),
        experience=experience(stages=[shape(total({"verdict": signed_outcome}))]),
        critic=critic_of(estimator, value_clip),
    )


METHOD = Method(
    heimdall,
    "Heimdall: test-time scaling on the generative verification",
    "https://arxiv.org/abs/2504.10337",
    changes="reward",
    baseline="other",
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
