"""G²RPO-A: two rows of a group begin with part of a solution, less of it as the policy succeeds.

"G²RPO-A: Guided Group Relative Policy Optimization with Adaptive Guidance",
https://github.com/T-Lab-CUHKSZ/G2RPO-A

    the first rows of a group begin with the first ℓ tokens of the worked solution
    ℓ' = ℓ ā / a every third step, a its accuracy and ā the mean of the two steps before
    A_i  = (R_i - mean) / (std + 1e-4) over all rows, std with n - 1
    loss = mean_i (1/n_i) Σ_t [-A π / sg(π) + β k3(π ‖ π_ref)]

Given tokens count as the row's own: they have its advantage, so a guided row that fails pushes the
solution down; with a mask on them this is PrefixRL's loss. ℓ stays in 1 … ℓ_max and as it is while
accuracy is 0. The release has 2 guided rows in every 12 whatever the group's size; here the first
rows of every group. β is that of the trainer they inherit from. With a budget below 3072 tokens a
guided row begins with what fits before its last token.
"""

from rlvr_jax.experience import experience, guide_first_rows
from rlvr_jax.objectives import (
    group_normalized,
    importance_weighted,
    kl_penalty,
    objective,
    on_policy_ratio,
    rollout_mean_token_mean,
)
from rlvr_jax.types import Method, Recipe


def g2rpo_a(
    guided: int = 2,
    longest: int = 3072,
    kl_coefficient: float = 0.04,
    epsilon: float = 1e-4,
) -> Recipe:
    """GRPO without a clip, on groups whose first rows are given the beginning of a solution.

    Args:
      guided: rows of each group that are.
      longest: tokens that they are given at first and at most (ℓ_max).
      kl_coefficient: weight of the KL (β); with 0 no reference is needed.
      epsilon: added to the standard deviation of a group's rewards.
    """
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            surrogate=importance_weighted(on_policy_ratio),
            regularizers=[kl_penalty(kl_coefficient)] if kl_coefficient else [],
            aggregation=rollout_mean_token_mean(),
        ),
        experience=experience(stages=[guide_first_rows(guided, longest)]),
    )


METHOD = Method(
    g2rpo_a,
    "G²RPO-A: Guided Group Relative Policy Optimization with Adaptive Guidance",
    "https://github.com/T-Lab-CUHKSZ/G2RPO-A",
    changes="advantage, surrogate, guidance, sampling",
    left_out="a linear decay of the length, their other script",
    reports=(
        "small models in maths and code: far above GRPO; guidance of a fixed length gains little "
        "(abstract)"
    ),
    traps=(
        "a guided row that fails pushes the solution down; a step without any right answer freezes "
        "ℓ, when help is needed most; a solution shorter than ℓ is shown whole, answer included"
    ),
)
