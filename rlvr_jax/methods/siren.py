"""SIREN: hold the nucleus entropy of the most uncertain tokens at its first value.

"Rethinking Entropy Regularization in Large Reasoning Models", https://github.com/Linn3a/siren

    Ĥ_t  = entropy of the policy's nucleus, renormalized
    H̄    = mean over rows of the mean of Ĥ over the tokens above the β quantile of their row
    R    = (H̄ - H*)², H* the H̄ of the first batch, or the mean of those of its updates
    loss = Σ PPO clip with dual clip / (B L) + κ R,    A_i = R_i - mean

The gradient of R goes through the probabilities in the nucleus; which entries and which tokens are
chosen is fixed. The authors' nucleus is made of the tokens before the one that crosses top_p, so
that a token of probability above top_p has Ĥ = 0; `include_crossing=True` is the nucleus of
nucleus sampling. Theirs takes H̄ per micro-batch and adds 1e-12 in logarithms; ours has neither.
The script sets a clip of 0.28, but the config's 0.2 on both sides wins. Advantages and length
normalisation are Dr. GRPO's; `max_length` is the budget of response tokens.
"""

from rlvr_jax.objectives.advantages.group_relative import group_centered
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.regularizers.anchored_entropy import anchored_entropy
from rlvr_jax.objectives.surrogates.aggregations import fixed_length_mean
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.types import Method, Recipe


def siren(
    coefficient: float = 0.005,
    quantile: float = 0.8,
    top_p: float = 0.8,
    include_crossing: bool = False,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    dual_clip: float = 3.0,
    max_length: int = 3072,
    anchor_updates: int = 1,
) -> Recipe:
    """Dr. GRPO with a dual clip and an anchor for the entropy of uncertain tokens.

    Args:
      coefficient: weight of the squared distance from the anchor (κ).
      quantile: of a response's entropies, above which its tokens count (β).
      top_p: mass of the nucleus (p_0).
      include_crossing: whether the token that reaches `top_p` belongs to the nucleus.
      clip_low, clip_high, dual_clip: trust region.
      max_length: budget of response tokens (L).
      anchor_updates: updates that the first batch is split into (minibatches).
    """
    return Recipe(
        objective=objective(
            advantage=group_centered(),
            surrogate=ppo_clip(low=clip_low, high=clip_high, dual=dual_clip),
            regularizers=[
                anchored_entropy(coefficient, quantile, top_p, include_crossing, anchor_updates)
            ],
            aggregation=fixed_length_mean(max_length),
        )
    )


METHOD = Method(
    siren,
    "Rethinking Entropy Regularization in Large Reasoning Models",
    "https://github.com/Linn3a/siren",
    changes="regularizer",
    left_out="the cut to the 10000 likeliest entries before the nucleus",
    reports="Qwen2.5-Math-7B, five maths sets: best of the entropy methods, pass@k kept",
    traps=(
        "it pulls entropy down as well as up; a nucleus of one token has entropy 0 and no gradient"
    ),
)
