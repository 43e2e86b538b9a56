"""RiskPO: optimize a mixture of values at risk of the scores of bundled prompts.

"RiskPO: Risk-based Policy Optimization via Verifiable Reward for LLM Post-Training",
https://github.com/RTkenny/RiskPO

    x    = Σ of the j-th rewards of the K prompts of a bundle
    g    = [(x - q_d)⁺ - (x - q_u)⁺ + q_d - q_u] / (α_u - α_d),  h = -(q_d - x)⁺ / α_d
    A    = (w h + g) / (w + 1) / std(x), divided by the std of the prompt's rewards
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ n_i

The constants are those of the authors' MATH script; with its "natural baseline" q_d - q_u every
advantage is ≤ 0. Their DAPO-math script has α_u = 0.8, `relative_credit` and no natural baseline,
the risk-seeking one α_u = 0.8 and `upper_tail`. Quantiles are tracked from update to update; with
`own_share` 1 they are the bundle's own (their mode "batch"), with ½ the mean of both ("mix"). Where
the scores of a bundle are equal, as of prompts that are all too hard, the authors divide by 1e-6;
we take a std below 1e-3 as 1. The clip is that of DAPO.
"""

from collections.abc import Callable

from rlvr_jax.objectives.advantages.risk import lower_tail, risk_sensitive
from rlvr_jax.objectives.advantages.risk_credit import Credit, spread_credit
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.types import Method, Recipe


def riskpo(
    num_prompts: int = 5,
    low: float = 0.2,
    high: float = 0.9,
    tail_weight: float = 1.5,
    tail: Callable = lower_tail,
    natural_baseline: bool = True,
    credit: Credit = spread_credit,
    track_rate: float = 0.1,
    clip_low: float = 0.2,
    clip_high: float = 0.28,
    epsilon: float = 1e-6,
    max_value: float = 1e3,
    min_spread: float = 1e-3,
    own_share: float = 0.0,
) -> Recipe:
    """Advantages by the quantiles of bundled scores, with a clipped ratio on the token mean.

    Args:
      num_prompts: prompts per bundle (K).
      low, high: levels of the quantiles (α_d, α_u).
      tail_weight: weight of the tail (w).
      tail: the bad one or the good one.
      natural_baseline: whether q_d - q_u is part of the range term.
      credit: how the value of a score is shared out.
      track_rate: step of the tracked quantiles (η).
      clip_low, clip_high: half-widths of the trust region (ε_low, ε_high).
      epsilon: added to every divisor.
      max_value: bound of a value before it is shared out (ours).
      min_spread: std of a bundle's scores below which it counts as 1 (ours).
      own_share: weight of the bundle's own quantiles against the tracked ones.
    """
    return Recipe(
        objective=objective(
            advantage=risk_sensitive(
                num_prompts,
                low,
                high,
                tail_weight,
                tail,
                natural_baseline,
                credit,
                track_rate,
                epsilon,
                max_value,
                min_spread,
                own_share,
            ),
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            aggregation=token_mean(),
        )
    )


METHOD = Method(
    riskpo,
    "RiskPO: Risk-based Policy Optimization via Verifiable Reward for LLM Post-Training",
    "https://github.com/RTkenny/RiskPO",
    changes="advantage",
    reports=(
        "Qwen2.5-1.5B and others: above GRPO in pass@1 and pass@k on maths, code and multimodal "
        "tasks"
    ),
    traps=(
        "with the default natural baseline every advantage is at most 0; bundles follow the order "
        "of the batch; `relative_credit` leaves [-1, 1] with dense rewards; the authors divide "
        "equal scores by 1e-6"
    ),
)
