"""STEER: damp the tokens whose update would change the entropy most.

"Rethinking Entropy Interventions in RLVR: An Entropy Change Perspective",
https://github.com/zz-haooo/STEER

    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    Ω_t  = (A / q) p (1 - p) (log p + H), p and q of the current and the old policy
    w_t  = w_max - (|Ω_t| - min |Ω|) (w_max - w_min) / (max |Ω| - min |Ω|)
    l_t  = max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)), at most -c A where A < 0
    loss = Σ w_t l_t / Σ n_i

Minimum and maximum run over the batch; the authors' code takes them per micro-batch. Their second
form, w = exp(-k |Ω|), is `damp_entropy_change_exponentially(low=0.8, floor=0.02)`. Constants are
those of the authors' scripts.
"""

from rlvr_jax.objectives.advantages.group_relative import group_normalized
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.objectives.transforms.entropy_change import damp_entropy_change
from rlvr_jax.types import Method, Recipe


def steer(
    weight_low: float = 0.8,
    weight_high: float = 1.2,
    clip_low: float = 0.2,
    clip_high: float = 0.28,
    dual_clip: float = 10.0,
) -> Recipe:
    """DAPO's clip with a dual bound, weighted by how little a token changes the entropy.

    Args:
      weight_low, weight_high: weights of the largest and the smallest change (w_min, w_max).
      clip_low, clip_high: half-widths of the trust region (ε_low, ε_high).
      dual_clip: bound of the loss of a negative advantage, in units of -A (c).
    """
    return Recipe(
        objective=objective(
            advantage=group_normalized(),
            transforms=[damp_entropy_change(weight_low, weight_high)],
            surrogate=ppo_clip(low=clip_low, high=clip_high, dual=dual_clip),
            aggregation=token_mean(),
        )
    )


METHOD = Method(
    steer,
    "Rethinking Entropy Interventions in RLVR: An Entropy Change Perspective",
    "https://github.com/zz-haooo/STEER",
    changes="weight, surrogate",
    reports=(
        "above baselines on six maths and three coding benchmarks, without entropy collapse (no "
        "number)"
    ),
    traps=(
        "the range hangs on one extreme: a sampled token of tiny old probability leaves all "
        "others w_max; weights per micro-batch are the authors', here per batch; the denominator "
        "does not see weights"
    ),
)
