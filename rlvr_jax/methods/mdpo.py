"""MDPO: an unclipped ratio, held by an exact KL to the old policy whose weight grows.

Tomar et al. 2020, "Mirror Descent Policy Optimization", https://arxiv.org/abs/2005.09814

    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = Σ [-A ρ + KL(π ‖ π_old) / t_k] / Σ n_i,  t_k = 1 - (k - 1) / K

with the KL over the whole vocabulary at each token and k the outer step, of K in the run. Several
updates per batch are essential: at the first the KL has no gradient. The paper is about control
tasks, with advantages of a critic and 10 gradient steps per outer step; the form for tokens and
K = 400 are ours. The form that fits the log ratio of the response to its centered reward is
`log_ratio_regression(0.1)` with `group_centered()` and `rollout_mean_token_mean()`.
"""

from rlvr_jax.objectives.advantages.group_relative import group_normalized
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.regularizers.mirror_descent import mirror_descent_kl
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import importance_weighted
from rlvr_jax.types import Method, Recipe


def mdpo(num_steps: int = 400, updates_per_step: int = 10, epsilon: float = 1e-6) -> Recipe:
    """GRPO's advantages on the token mean, with a penalty instead of a clip.

    Args:
      num_steps: outer steps of the run, one batch each (K).
      updates_per_step: gradient steps on one batch; the run must make as many.
      epsilon: added to the standard deviation of a group's rewards.
    """
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            surrogate=importance_weighted(),
            regularizers=[mirror_descent_kl(num_steps, updates_per_step)],
            aggregation=token_mean(),
        )
    )


METHOD = Method(
    mdpo,
    "Mirror Descent Policy Optimization",
    "https://arxiv.org/abs/2005.09814",
    changes="surrogate, regularizer",
    evidence="reconstruction",
    left_out="the critic, the Tsallis divergence and the off-policy variant",
    reports="MuJoCo: on policy as good as TRPO and PPO or better, off policy as SAC or better",
    traps=(
        "with one update per batch the KL has no gradient: plain policy gradient; 1 / t_k grows "
        "without bound at the end, so num_steps must be the run's; ratios are not clipped"
    ),
)
