"""DCPO: pull right answers towards a hotter or a colder policy, as the entropy asks.

"Distribution-Centric Policy Optimization Dominates Exploration-Exploitation Trade-off",
https://github.com/597358816/DCPO

    A_i   = (R_i - mean) / (std + 1e-6), std with n - 1
    T     = T_hot if H ≤ H₀ else T_cold;  ρ_T = π_old at T / π_old, of the sampled token
    a     = min(|H₀ - H|, cap) / share of good rollouts;  α = a / (1 + a)
    A'_it = (1 - α) A_i + α 1[outcome_i > threshold] ρ_T
    l_t   = max(-A' ρ, -A' clip(ρ, 1 - ε, 1 + ε)), at most -c A' where A' < 0
    loss  = Σ l_t / Σ n_i

H is -mean old_logp of the last update's batch, 0 at first. Constants are those of the authors' code
and script; the best row of their table has H₀ = 0.25. Without a good rollout α is 0 here; the code
divides by 0. Their README writes the pull as a separate term.
"""

from rlvr_jax.objectives.advantages.group_relative import group_normalized
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.objectives.transforms.target_temperature import mix_in_tempered_policy
from rlvr_jax.types import Method, Recipe


def dcpo(
    entropy_target: float = 0.5,
    temperature_high: float = 1.2,
    temperature_low: float = 0.8,
    outcome_threshold: float = 0.05,
    gap_cap: float = 0.1,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    dual_clip: float = 3.0,
) -> Recipe:
    """GRPO's advantages mixed with the ratio to a tempered policy, on a dual clip.

    Args:
      entropy_target: nats (H₀).
      temperature_high, temperature_low: of the target policy (T_hot, T_cold), in units of the
        sampler's.
      outcome_threshold: above which a rollout is good.
      gap_cap: largest distance from the target that counts, nats.
      clip_low, clip_high: half-widths of the trust region (ε).
      dual_clip: bound of the loss of a negative advantage, in units of -A (c).
    """
    pull = mix_in_tempered_policy(
        entropy_target, temperature_high, temperature_low, outcome_threshold, gap_cap
    )
    return Recipe(
        objective=objective(
            advantage=group_normalized(),
            transforms=[pull],
            surrogate=ppo_clip(low=clip_low, high=clip_high, dual=dual_clip),
            aggregation=token_mean(),
        )
    )


METHOD = Method(
    dcpo,
    "Distribution-Centric Policy Optimization Dominates Exploration-Exploitation Trade-off",
    "https://github.com/597358816/DCPO",
    changes="advantage, surrogate",
    left_out="sampling with top-p 0.99",
    reports=(
        "mean of 7 benchmarks over GRPO: Qwen2.5-7B 47.70 to 50.94, Qwen2.5-Math-7B 51.60 to "
        "55.77, Qwen3-4B 44.63 to 46.41"
    ),
    traps=(
        "a format reward above 0.05 makes a row good; ρ_T has no bound for rare tokens; H is -logp "
        "of drawn tokens; all-right groups are trained too; H₀ = 0.25 did best, the script has 0.5"
    ),
)
