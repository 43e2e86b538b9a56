"""APO: a KL that lets go of rare successes, and a harder push against long wrong answers.

"Enhancing Reasoning Ability of MLLMs via Asymmetric Policy Optimization",
https://github.com/Indolent-Kawhi/View-R1

    A_i  = (R_i - mean) / (std + 1e-9); wrong ones Δ_i tokens longer than the mean right one of
           their group: A_i (2 - b^-Δ_i)
    w_i  = 1 - exp(-e (1 - d)) where A_i > 0 in a mixed group, else 1; d = share of wrong rollouts
    loss = mean_i (1/n_i) Σ_t [max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) + λ w_i k3(π ‖ π_ref)]

Right is a reward whose integer part is at least 1. With the authors' b = 1.00001 an excess of 1000
tokens multiplies by 1.01: the term is almost inert. λ is that of their run, the clip of 0.2 too.
"""

from rlvr_jax.objectives.advantages.group_relative import group_normalized
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.regularizers.token_penalties import kl_penalty
from rlvr_jax.objectives.surrogates.aggregations import rollout_mean_token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.objectives.transforms.difficulty import amplify_long_errors, kl_weight_by_difficulty
from rlvr_jax.types import Method, Recipe


def apo(
    length_base: float = 1.00001,
    kl_coefficient: float = 1e-3,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    epsilon: float = 1e-9,
) -> Recipe:
    """GRPO with a KL weighted by difficulty and advantages of wrong answers scaled by length.

    Args:
      length_base: how fast the push grows with the excess length (b), above 1.
      kl_coefficient: weight of the KL (λ); with 0 no reference is needed.
      clip_low, clip_high: half-widths of the trust region (ε).
      epsilon: added to the standard deviation of a group's rewards, and to the number of right
        rollouts where lengths are averaged.
    """
    kl = [kl_penalty(kl_coefficient, weight=kl_weight_by_difficulty)] if kl_coefficient else []
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            transforms=[amplify_long_errors(length_base, epsilon)],
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            regularizers=kl,
            aggregation=rollout_mean_token_mean(),
        )
    )


METHOD = Method(
    apo,
    "Enhancing Reasoning Ability of MLLMs via Asymmetric Policy Optimization",
    "https://github.com/Indolent-Kawhi/View-R1",
    changes="advantage, regularizer",
    reports=(
        "View-R1-3B (Qwen2.5-VL-3B): about 7 % above its base on the mean of reasoning benchmarks, "
        "and above models of 7B to 11B"
    ),
    traps=(
        "at the authors' b an excess of 1000 tokens pushes 1 % harder; a reward below 1 is never "
        "right, so rewards in fractions make all wrong; a wrong answer above the group's mean "
        "gains by length"
    ),
)
