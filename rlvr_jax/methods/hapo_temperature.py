"""HAPO's adaptive temperature: uncertain tokens are drawn a little hotter, sure ones colder.

"From Uniform to Heterogeneous" (HAPO), https://github.com/starriver030515/HAPO

    e    = ln H of a token; c its 0.8 quantile over the last batch, s its root mean square around c
    ĥ    = (e - c) / s, divided by the largest of the last batch above c, by the smallest below it
    T    = 1 + τ clip(ĥ, -1, 1)
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ n_i

The ratio ρ is that of temperature 1. T differs from it by 5 % at most and nothing repairs it;
`cap` is ours: each token's loss times min(exp(old_logp - behaviour_logp), C). The released code
has a sign the other way round, by which the surest tokens are drawn hotter, too (`mirrored`); the
default is what the paper says. With it most tokens are drawn colder than 1. This is one of four
parts of HAPO, the others are `hapo`; the loss here is DAPO's, our choice.
"""

from rlvr_jax.experience import entropy_heated, experience
from rlvr_jax.objectives import (
    group_normalized,
    objective,
    ppo_clip,
    token_mean,
    truncate_importance,
)
from rlvr_jax.types import Method, Recipe


def hapo_temperature(
    strength: float = 0.05,
    pivot: float = 0.8,
    mirrored: bool = False,
    cap: float | None = None,
    clip_low: float = 0.2,
    clip_high: float = 0.28,
    epsilon: float = 1e-6,
) -> Recipe:
    """A clipped ratio on the token mean, on responses drawn at a temperature for each token.

    Args:
      strength: largest change of the temperature (τ).
      pivot: quantile of the entropies at which it changes sign.
      mirrored: the sign of the released code.
      cap: largest importance weight of a token (C); None: no weight.
      clip_low, clip_high: half-widths of the trust region (ε_low, ε_high).
      epsilon: added to the standard deviation of a group's rewards.
    """
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            transforms=[] if cap is None else [truncate_importance(cap)],
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            aggregation=token_mean(),
        ),
        experience=experience(draw=entropy_heated(strength, pivot, mirrored)),
    )


METHOD = Method(
    hapo_temperature,
    "From Uniform to Heterogeneous: Tailoring Policy Optimization to Every Token's Nature",
    "https://github.com/starriver030515/HAPO",
    changes="sampling",
    left_out="its advantage, weights and clip bounds, which are hapo",
    reports="as a part of HAPO, which is above DAPO at several sizes; its own share is not told",
    traps=(
        "a single token of almost no entropy stretches the scale, so that other sure tokens hardly "
        "change; the first step has no statistics and draws at 1; most tokens are drawn colder"
    ),
)
