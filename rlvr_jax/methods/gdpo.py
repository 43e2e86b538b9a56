"""GDPO: normalize each of several rewards by itself, then sum, then standardize over the batch.

"GDPO: Group reward-Decoupled Normalization Policy Optimization for Multi-reward RL Optimization",
https://github.com/NVlabs/GDPO

    a_ik = (x_ik - mean) / (std + 1e-4) over the group, for each reward k
    A_i  = s_i / (std + 1e-4) over the batch, s_i = Σ_k w_k a_ik, whose mean is 0
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) / Σ n_i

This is the form of the authors' TRL code; their verl code has 1e-6 and whitens over tokens:
`whitened(decoupled_normalized(epsilon=1e-6, batch_epsilon=None), ddof=1, epsilon=1e-8, floor=0)`.
A reward of NaN does not apply: it is left out of its group, where the authors take it as 0. The
clip of 0.2 is GRPO's. The paper also conditions easy rewards on hard ones.
"""

from collections.abc import Sequence

from rlvr_jax.objectives.advantages.multi_reward import decoupled_normalized
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.types import Method, Recipe


def gdpo(
    weights: Sequence[float] | None = None,
    epsilon: float = 1e-4,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> Recipe:
    """Advantages from separately normalized rewards, with a clipped ratio on the token mean.

    Args:
      weights: of the rewards (w); None: all 1.
      epsilon: added to the standard deviations of groups and of the batch.
      clip_low, clip_high: half-widths of the trust region (ε).
    """
    return Recipe(
        objective=objective(
            advantage=decoupled_normalized(weights, epsilon, batch_epsilon=epsilon),
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            aggregation=token_mean(),
        )
    )


METHOD = Method(
    gdpo,
    "GDPO: Group reward-Decoupled Normalization Policy Optimization for Multi-reward RL"
    " Optimization",
    "https://github.com/NVlabs/GDPO",
    changes="advantage",
    left_out="rewards that count only if another one is earned",
    reports=(
        "tool calls (Qwen2.5-1.5B-Instruct), maths and code: above GRPO throughout; format is "
        "learned where GRPO's stalls"
    ),
    traps=(
        "a reward of tiny spread is blown up to full size, a constant one loses its weight; with "
        "one reward it is GRPO scaled over the batch; verl's form whitens over tokens, so long "
        "answers weigh more"
    ),
)
