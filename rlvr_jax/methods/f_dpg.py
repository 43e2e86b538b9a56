"""f-DPG: fit the policy to the target of KL-regularized RL under a divergence of choice.

Go et al. 2023, "Aligning Language Models with Preferences through f-divergence Minimization", code
at https://github.com/naver/disco

    p(y)  = π_ref(y) exp(R/β) / Z, Z estimated per prompt;  t = π(y)/p(y)
    loss  = -mean_i sg(π/π_old · (-f'(t) - b)) Σ_t logp_it

Everything is of whole responses, the ratio is not clipped, and b is the mean of the last 1024
pseudo-rewards. Jensen-Shannon is the authors' default: its pseudo-rewards are bounded below, and it
balances fit and diversity. Reverse KL is RL with a KL penalty. No β for verifiable rewards was
found; 1 is ours. Z is that of the batch at hand, where the authors keep a running mean per prompt.
A group of one is its own Z, and equal rewards do not give 0.
"""

from rlvr_jax.objectives.advantages.distribution_matching import (
    FDivergence,
    pseudo_reward,
    target_jensen_shannon,
)
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.statistics.ratios import product_ratio
from rlvr_jax.objectives.surrogates.aggregations import rollout_mean_token_sum
from rlvr_jax.objectives.surrogates.frozen_weights import weighted_reinforce
from rlvr_jax.types import Method, Recipe


def f_dpg(
    temperature: float = 1.0, window: int = 1024, divergence: FDivergence = target_jensen_shannon
) -> Recipe:
    """Pseudo-rewards of a divergence times the importance and the log-prob of the response.

    Args:
      temperature: of the rewards in the target (β).
      window: rollouts over which the baseline is averaged.
      divergence: one of `rlvr_jax.objectives.advantages.distribution_matching`.
    """
    return Recipe(
        objective=objective(
            advantage=pseudo_reward(divergence, temperature, window),
            surrogate=weighted_reinforce(ratio=product_ratio),
            aggregation=rollout_mean_token_sum(),
        )
    )


METHOD = Method(
    f_dpg,
    "Aligning Language Models with Preferences through f-divergence Minimization",
    "https://github.com/naver/disco",
    changes="advantage, surrogate, regularizer",
    left_out="running estimates of Z per prompt, a proposal apart from the policy, targets made of"
    " constraints",
    reports=(
        "GPT-2 size models, controlled text: no divergence wins everywhere; Jensen-Shannon "
        "balances fit and diversity, often far above forward KL"
    ),
    traps=(
        "equal rewards do not give 0; Z is of the group at hand, so a group of one teaches nothing "
        "about its reward; ratios of whole responses are not clipped: one update per batch"
    ),
)
