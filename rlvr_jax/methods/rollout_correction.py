"""Rollout correction: tokens are weighed by how far the sampler strayed from the policy it served.

verl, "Rollout correction", https://github.com/volcengine/verl (docs/algo/rollout_corr.md)

    r    = exp(old_logp - behaviour_logp), log r clamped to ±20
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = Σ min(r, C) · max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ n_i

This is truncated importance sampling of tokens; C = 2 is verl's. The trainer's own ratio ρ stays
apart from r. The other corrections in use are parts with which this objective is composed:

- whole rollouts: `truncate_importance(C, ratio=product_ratio)`
- IcePop and masked importance sampling: `band_importance(low, high)`
- geometric rejection: `drop_by_ratio(low, high)`; by a divergence: `drop_by_divergence(limit)`
- DeepSeek-V3.2's mask of drifted failures: `drop_drifted_failures(limit)`
- without old log-probs: `weighted_reinforce(low=1, high=C - 1)` on the sampler's log-probs

The sampler's log-probs must be those of the distribution that the trainer scores, temperature and
cuts included; otherwise r measures these.
"""

from collections.abc import Sequence

from rlvr_jax.objectives.advantages.group_relative import group_normalized
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.objectives.transforms.corrections import truncate_importance
from rlvr_jax.types import Method, Recipe


def rollout_correction(
    cap: float = 2.0,
    rejections: Sequence[Transform] = (),
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    epsilon: float = 1e-6,
) -> Recipe:
    """A clipped ratio on the token mean, under the truncated importance of each token.

    Args:
      cap: largest weight of a token (C).
      rejections: parts that take whole rollouts out, `drop_by_ratio` or `drop_by_divergence`.
      clip_low, clip_high: half-widths of the trust region (ε_low, ε_high).
      epsilon: added to the standard deviation of a group's rewards.
    """
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            transforms=[truncate_importance(cap), *rejections],
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            aggregation=token_mean(),
        )
    )


METHOD = Method(
    rollout_correction,
    "verl: rollout correction for the mismatch of sampler and trainer",
    "https://github.com/volcengine/verl",
    changes="weight, mask",
    reports=(
        "reports of users: uncorrected bfloat16 rollouts of another engine collapse on long runs"
    ),
    traps=(
        "the sampler's log-probs must be taken at the same temperature and cuts, else the ratio "
        "measures those"
    ),
)
