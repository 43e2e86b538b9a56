"""GMPO: the geometric mean of the token ratios, each cut before the mean.

Zhao et al. 2025, "Geometric-Mean Policy Optimization", https://arxiv.org/abs/2507.20673

    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    d    = logp - old_logp;  c = min(d, κ) if A > 0, max(d, -κ) if A < 0
    loss = -(1/B) Σ_i A_i exp((1/n_i) Σ_t c_it)

κ = 0.4 bounds the logarithm: a single ratio may reach 1.49. The scripts of the authors have it on
both sides and advise less for mixtures of experts. GSPO takes the mean first and clips it after;
without a limit the two agree. Rows without tokens count in B, as in the authors' code.
"""

from rlvr_jax.objectives.advantages.group_relative import group_normalized
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.surrogates.aggregations import row_mean_token_mean
from rlvr_jax.objectives.surrogates.soft_clips import geometric_mean_clip
from rlvr_jax.types import Method, Recipe


def gmpo(log_clip: float = 0.4, epsilon: float = 1e-6) -> Recipe:
    """Group-normalized advantages times the geometric mean of the cut token ratios.

    Args:
      log_clip: bound of the log ratio of a token, on the side it is pushed to (κ).
      epsilon: added to the standard deviation of a group's rewards.
    """
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            surrogate=geometric_mean_clip(log_clip),
            aggregation=row_mean_token_mean(),
        )
    )


METHOD = Method(
    gmpo,
    "Geometric-Mean Policy Optimization",
    "https://arxiv.org/abs/2507.20673",
    changes="surrogate",
    reports="Qwen2.5-Math-7B, five benchmarks: up to 4.1 points of pass@1 over GRPO",
    traps="the clip comes before the mean of logarithms, unlike GSPO's",
)
