"""VERL (Velocity-Exploiting Rank-Learning): a bonus for responses whose hidden states explore.

"Beyond the Exploration-Exploitation Trade-off: A Hidden State Approach for LLM Reasoning in RLVR",
https://github.com/hf618/VERL

    x_j  = effective rank of the hidden states of the first j s + 1 of the last 512 tokens
    δ    = relative deviations of the rank, its velocity and its acceleration from moving means
    β    = σ(2 δ_acc);  aux = β tanh(δ_rank) + (1 - β) tanh(δ_vel)
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1;  A' = A + min(max(aux, 0), |A| / κ)
    loss = Σ max(-A' ρ, -A' clip(ρ, 1 - ε, 1 + ε)) / Σ n_i

The bonus goes to every token, as the paper writes it; in the code it reaches the last one alone
(`where=is_last_token`), and the released script switches it off. Constants are those of the script;
the configuration file has stride 20, smoothing 0.7 and gain 1.5. Hidden states are those of the
current policy, which at the first update after sampling is the one that sampled.
"""

from collections.abc import Callable

from rlvr_jax.objectives.advantages.group_relative import group_normalized
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.objectives.transforms.effective_rank import credit_rank_growth, every_token
from rlvr_jax.types import Method, Recipe


def verl_effective_rank(
    stride: int = 40,
    window: int = 512,
    smoothing: float = 0.3,
    gain: float = 2.0,
    divisor: float = 2.0,
    where: Callable = every_token,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> Recipe:
    """GRPO's advantages with a bonus from the rank of the hidden states, on the token mean.

    Args:
      stride: tokens between two prefixes (s).
      window: tokens at the end of the response that are looked at.
      smoothing: weight of the batch in the moving means.
      gain: of the switch between level and velocity.
      divisor: the bonus is at most |A| over it (κ).
      where: (mask) -> bool [B, T], the tokens that are paid.
      clip_low, clip_high: half-widths of the trust region (ε).
    """
    return Recipe(
        objective=objective(
            advantage=group_normalized(),
            transforms=[credit_rank_growth(stride, window, smoothing, gain, divisor, where)],
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            aggregation=token_mean(),
        )
    )


METHOD = Method(
    verl_effective_rank,
    "Beyond the Exploration-Exploitation Trade-off: A Hidden State Approach for LLM Reasoning in"
    " RLVR",
    "https://github.com/hf618/VERL",
    changes="advantage",
    reports=(
        "several models: up to 21.4 points on Gaokao 2024; above GRPO and PPO in pass@1 and pass@k"
    ),
    traps=(
        "the released script computes no bonus, and its code pays the last token only; answers "
        "under 80 tokens have no velocity: lower `stride`; the moving means start at 0, so early "
        "bonuses say little"
    ),
)
