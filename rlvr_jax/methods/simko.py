"""SimKO: share the credit of right answers with likely tokens, push wrong favourites harder.

"SimKO: Simple Pass@K Policy Optimization", https://github.com/CLR-Lab/SimKO

    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    gate = tokens whose entropy is above the τ quantile of their response
    ρ'_t = (1 - α) ρ + (α/K) Σ_k sg(ρ / ρ_k) ρ_k at gated tokens of right answers, ρ elsewhere
    A'_t = λ A_i at gated tokens of answers with A < 0 whose token is the policy's likeliest
    loss = Σ max(-A' ρ', -A' clip(ρ', 1 - ε, 1 + ε)) / Σ n_i

k runs over the K likeliest tokens of the current policy, whose log-probs under the old policy are
needed too: with one update per batch they are those of sampling time. Constants are those of the
authors' code, where λ is hard-coded.
"""

from rlvr_jax.objectives.advantages.group_relative import group_normalized
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.objectives.transforms.smoothed_ratio import boost_favourites, smooth_ratio
from rlvr_jax.types import Method, Recipe


def simko(
    share: float = 0.01,
    top_k: int = 3,
    quantile: float = 0.8,
    negative_factor: float = 1.1,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> Recipe:
    """GRPO's advantages on the token mean, with a smoothed ratio and a boost.

    Args:
      share: of the gradient that the likeliest tokens get (α).
      top_k: how many they are (K).
      quantile: of the entropies of a response above which a token is gated (τ).
      negative_factor: on the advantage of gated favourites of wrong answers (λ).
      clip_low, clip_high: half-widths of the trust region (ε).
    """
    return Recipe(
        objective=objective(
            advantage=group_normalized(),
            transforms=[
                smooth_ratio(share, top_k, quantile),
                boost_favourites(negative_factor, quantile),
            ],
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            aggregation=token_mean(),
        )
    )


METHOD = Method(
    simko,
    "SimKO: Simple Pass@K Policy Optimization",
    "https://github.com/CLR-Lab/SimKO",
    changes="advantage, surrogate",
    reports=(
        "Qwen2.5-Math-7B and others: higher pass@k for all k up to 256 at equal or higher pass@1"
    ),
    traps=(
        "the likeliest tokens are those of now, their old log-probs those of the weights that "
        "sampled: one update a batch"
    ),
)
