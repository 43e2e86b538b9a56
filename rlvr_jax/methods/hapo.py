"""HAPO: one score from the entropy of a token decides its credit and its trust region.

"From Uniform to Heterogeneous: Tailoring Policy Optimization to Every Token's Nature",
https://github.com/starriver030515/HAPO

    ĥ_t  in [-1, 1] from ln H, 0 at its 0.8 quantile over the batch (`entropy_score`)
    A_i  = (R_i - μ) / (σ + 1e-6) over the tokens of the group, or GRPO's if some |A| ≥ 5
    ε_low,t = ε_low (1 - α ĥ) where ĥ ≤ 0;  ε_high,t = ε_high (1 + α ĥ) where ĥ > 0
    A'_t = A (1 + β ĥ) where ĥ > 0 and ρ left, or ĥ ≤ 0 and ρ is in, the inner half of the region
    l_t  = max(-A' ρ, -A' clip(ρ, 1 - ε_low,t, 1 + ε_high,t)), at most -c A' where A' < 0
    loss = Σ l_t / Σ n_i

The released code has |ĥ| for ĥ, by a slip of sign, and its test of |A| sees padding: with
`released=True` so do we. Its statistics are those of a micro-batch, ours those of the batch.
Constants are the authors'; their data side is that of `dapo`.
"""

from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.objectives.transforms.heterogeneity import (
    adapt_clip,
    redistribute_credit,
    token_normalized,
)
from rlvr_jax.types import Method, Recipe


def hapo(
    pivot: float = 0.8,
    clip_strength: float = 1.0,
    credit_strength: float = 1.0,
    limit: float = 5.0,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    dual_clip: float = 10.0,
    released: bool = False,
) -> Recipe:
    """Token-normalized advantages, redistributed by entropy, in a trust region that follows it.

    Args:
      pivot: quantile of the log entropy at which the score is 0.
      clip_strength: how much the trust region widens (α).
      credit_strength: how much the advantage changes (β).
      limit: of |A|, above which a group falls back to GRPO's advantages.
      clip_low, clip_high: half-widths of the trust region at the pivot (ε_low, ε_high).
      dual_clip: bound of the loss of a negative advantage, in units of -A (c).
      released: the two slips of the released code.
    """
    return Recipe(
        objective=objective(
            advantage=token_normalized(limit, padding=released),
            transforms=[
                adapt_clip(clip_strength, pivot, signed=not released),
                redistribute_credit(credit_strength, pivot, signed=not released),
            ],
            surrogate=ppo_clip(low=clip_low, high=clip_high, dual=dual_clip),
            aggregation=token_mean(),
        )
    )


METHOD = Method(
    hapo,
    "From Uniform to Heterogeneous: Tailoring Policy Optimization to Every Token's Nature",
    "https://github.com/starriver030515/HAPO",
    changes="advantage, surrogate",
    left_out="a sampling temperature that follows the entropy token by token"
    " (`sampling_temperature`); the filter and the length penalty of DAPO",
    reports="several model sizes in maths: above DAPO on mean accuracy (abstract)",
    traps=(
        "the released code takes sure tokens for uncertain ones by a slip of sign; the surest "
        "token of a batch gets nothing within its zone; statistics depend on how the batch is cut"
    ),
)
