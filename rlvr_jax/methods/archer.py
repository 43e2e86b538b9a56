"""Archer: looser constraints where the policy is uncertain, tighter ones where it knows.

Wang et al. 2025, "Stabilizing Knowledge, Promoting Reasoning: Dual-Token Constraints for RLVR",
https://arxiv.org/abs/2507.15778

    R    = tokens whose entropy lies above the 0.8 quantile of their response; K = the others
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) / Σ n_i + β_K mean_K k3 + β_R mean_R k3

with ε = 0.5 in R and 0.2 in K, the loss of a token at most -10 A where A < 0, and k3 of the policy
and the reference, clamped at 10 nats. Each class has a mean of its own, so a token of K weighs
1.25 times what it would in one mean. Entropy is the current policy's: a token may change its class
between updates. Defaults are those of the authors' script, which updates on a batch for three
epochs. Its code takes the class means per micro-batch; here they are those of the batch.
"""

from rlvr_jax.objectives.advantages.group_relative import group_normalized
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.regularizers.class_penalties import kl_by_entropy
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.objectives.transforms.trust_regions import clip_by_entropy
from rlvr_jax.types import Method, Recipe


def archer(
    quantile: float = 0.8,
    clip_low_entropy: float = 0.2,
    clip_high_entropy: float = 0.5,
    kl_low_entropy: float = 0.001,
    kl_high_entropy: float = 0.0,
    dual: float = 10.0,
    epsilon: float = 1e-6,
) -> Recipe:
    """A dual-clipped ratio on the token mean, clip and KL by the entropy of the token.

    Args:
      quantile: of the entropies of a response, above which a token is one of reasoning.
      clip_low_entropy, clip_high_entropy: half-widths of the trust region (ε in K and in R).
      kl_low_entropy, kl_high_entropy: weights of the two mean KLs (β_K, β_R); with two
        zeros no reference is needed.
      dual: bound of the loss where A < 0, in units of -A.
      epsilon: added to the standard deviation of a group's rewards.
    """
    kl = []
    if kl_low_entropy or kl_high_entropy:
        kl = [kl_by_entropy(quantile, kl_low_entropy, kl_high_entropy)]
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            transforms=[clip_by_entropy(quantile, clip_low_entropy, clip_high_entropy)],
            surrogate=ppo_clip(low=clip_low_entropy, high=clip_low_entropy, dual=dual),
            regularizers=kl,
            aggregation=token_mean(),
        ),
    )


METHOD = Method(
    archer,
    "Stabilizing Knowledge, Promoting Reasoning: Dual-Token Constraints for RLVR",
    "https://arxiv.org/abs/2507.15778",
    changes="surrogate, regularizer",
    left_out="the filter that rejects groups of equal outcomes",
    reports=(
        "R1-Distill-Qwen-1.5B: above DAPO on AIME24, AIME25, AMC and LiveCodeBench; without the "
        "KL on knowledge tokens it collapses"
    ),
    traps="a token may change its class between two updates of one batch",
)
