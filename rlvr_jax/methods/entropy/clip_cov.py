"""Clip-Cov: drops a few tokens whose log-prob and advantage agree most.

Cui et al. 2025, "The Entropy Mechanism of Reinforcement Learning for Reasoning Language Models",
https://arxiv.org/abs/2505.22617

    cov_t = (A_t - mean A) (logp_t - mean logp)
    loss  = Σ 1[t not in S] · max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ n_i

S are max(⌊r n⌋, 1) random tokens with ω_low < cov < ω_high on which the ratio clip does not act.
The symbols r, ω_low and ω_high are `fraction`, `covariance_low` and `covariance_high`. Means and n
are over the whole batch, as in the paper. The authors' code takes them per micro-batch. ε_low =
ε_high = 1 hardly clips; both are those of the authors' scripts. The scripts also set a dual clip,
which the authors' code ignores.

Left out: the group filter of `dapo`, which the authors' scripts set.
Reports: mean of seven maths sets in %, GRPO to Clip-Cov: Qwen2.5-7B 38.6 to 40.4, 32B 45.8 to 50.3.
Traps: Every update drops at least one token. It never drops the largest covariances, above ω_high.
A ratio clip of 0.2 makes it another method.
"""

from typing import Any

from rlvr_jax.objectives import clipped_objective, drop_high_covariance
from rlvr_jax.types import Method, Recipe, Shown, arguments_of
from rlvr_jax.types.hyperparameters import Share


@arguments_of(clipped_objective, "clip_low", "clip_high", clip_low=1.0, clip_high=1.0)
def clip_cov(
    fraction: Share = 2e-4, covariance_low: float = 1.0, covariance_high: float = 5.0, **clip: Any
) -> Recipe:
    """Applies GRPO's advantages with the token mean, without a few tokens of high covariance.

    Args:
      fraction: fraction of the tokens that are dropped in each update (r).
      covariance_low, covariance_high: bounds of the covariance of a token that may be dropped, in
        nats times the unit of the advantage (ω_low, ω_high).
    """
    transforms = [drop_high_covariance(fraction, low=covariance_low, high=covariance_high)]
    return Recipe(clipped_objective(transforms=transforms, **clip))


METHOD = Method(
    clip_cov,
    changes="weight",
    random=True,
    small={"fraction": 0.05, "covariance_low": 0.1},
    shown=Shown("brackets", "chosen_fraction", steps=300),
    # The default is for millions of tokens: it chooses none of a few thousand.
    presets={
        "brackets": {"hyperparameters": ("fraction=0.0075",)},
        "arithmetic:hard": {"hyperparameters": ("fraction=0.0075",)},
    },
)
