"""HPT: reinforcement where the policy solves the prompt, imitation where it does not.

"Towards a Unified View of Large Language Model Post-Training",
https://github.com/TsinghuaC3I/Unify-Post-Training

    group solved more than γ times:   Σ_t -A_i ρ_t / L,  A_i = R_i - mean over its own rollouts
    else:                             -logp of its demonstration, averaged over all such tokens
    loss = first + c · second - c_H mean H

One row of a group that is solved so seldom, marked `off_policy`, is the demonstration: the worked
solution of its prompt, in the place of one of the rollouts, all of which are dropped. There is no
clip, no standard deviation and no division by the number of rows: the first part grows with the
kept rows and the second does not. The authors take both per micro-batch, we over the batch, and
limit the gradient norm at 80. γ is 0 of 8 (Qwen) or 2 of 8 (Llama); c is 0.3 for the 1.5B model.
The paper's estimator is a frame for these and other losses: reference policy in the denominator,
advantage, stability mask. Soft gates and the third band, where demonstrations are treated by
off-policy RL, are off in the scripts and not here.
"""

from rlvr_jax.experience import demonstrate, experience, solved_at_most
from rlvr_jax.objectives.advantages.demonstrations import (
    drop_demonstrated,
    imitate_demonstrations,
    solved_group_advantage,
)
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.regularizers.token_penalties import statistic_term
from rlvr_jax.objectives.surrogates.aggregations import fixed_length_sum
from rlvr_jax.objectives.surrogates.policy_gradient import importance_weighted
from rlvr_jax.types import Method, Recipe


def hpt(
    solved: int = 0,
    imitation_coefficient: float = 1.0,
    entropy_coefficient: float = 0.001,
    max_length: int = 8192,
) -> Recipe:
    """Unclipped policy gradient on groups the policy solves, imitation on the others.

    Args:
      solved: right rollouts up to which a group is imitated instead (γ).
      imitation_coefficient: weight of the imitation (c).
      entropy_coefficient: weight of the mean entropy of the tokens trained by reward (c_H).
      max_length: budget of response tokens (L).
    """
    bonus = [statistic_term(-entropy_coefficient, "entropy")] if entropy_coefficient else []
    return Recipe(
        objective=objective(
            advantage=solved_group_advantage(solved),
            transforms=[drop_demonstrated(solved)],
            surrogate=importance_weighted(),
            regularizers=[imitate_demonstrations(imitation_coefficient, solved), *bonus],
            aggregation=fixed_length_sum(max_length),
        ),
        experience=experience(stages=[demonstrate(solved_at_most(solved))]),
    )


METHOD = Method(
    hpt,
    "Towards a Unified View of Large Language Model Post-Training",
    "https://github.com/TsinghuaC3I/Unify-Post-Training",
    changes="advantage, mask, surrogate, regularizer, guidance",
    reports=(
        "Qwen2.5-Math-7B: ahead of SFT, GRPO, one after the other, LUFFY and SRFT on six maths "
        "sets and two others"
    ),
    traps=(
        "the first term grows with the kept rows, imitation does not: another batch size is "
        "another balance; all-right groups teach nothing; set γ for the base (0 of 8 Qwen, 2 of 8 "
        "Llama)"
    ),
)
