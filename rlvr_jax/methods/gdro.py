"""GDRO: prompts are binned by difficulty, and bins with high losses weigh more.

"Group Distributionally Robust Optimization-Driven Reinforcement Learning for LLM Reasoning",
https://github.com/kishanpb/verl-gdro

    S_b  ← (1 - β) S_b + β ℓ_b, the moving average of the loss of bin b
    q_b  = (1 - γ) softmax(η S)_b + γ / K over the K bins of the batch
    A'_i = A_i · min(q_b(i) / mean q, 15), A_i = (R_i - mean) / (std + 1e-6)
    loss = Σ [max(-A' ρ, -A' clip(ρ, 1 - ε_low, 1 + ε_high)) + κ k3(π ‖ π_ref)] / Σ n_i

Constants and the normalized weight are those of the authors' code; the paper multiplies by
min(exp(η S_b), cap) (`exponential_weights`). Their ℓ is the clipped surrogate loss, whose mean over
a group is about 0; ours is 1 - outcome, as the paper's argument wants. Bins are by the pass rate in
the batch, and prompts that are always or never solved have no bin of their own; the authors bin by
the last 50 visits, with a margin (`difficulty_bins`). Numbers of rollouts per bin: `choose_arms`.
"""

from collections.abc import Callable, Sequence

from jaxtyping import Array

from rlvr_jax.objectives.advantages.group_relative import group_normalized
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.regularizers.token_penalties import kl_penalty
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.objectives.transforms.difficulty_bins import hard_bins_first
from rlvr_jax.types import Method, Recipe, Rollouts


def gdro(
    edges: Sequence[float] = (0.4, 0.75),
    rate: float = 0.12,
    temperature: float = 0.65,
    mixing: float = 0.01,
    max_weight: float = 15.0,
    by_share: bool = True,
    kl_coefficient: float = 0.001,
    clip_low: float = 0.2,
    clip_high: float = 0.28,
    epsilon: float = 1e-6,
    bins: Callable[[Rollouts], Array] | None = None,
) -> Recipe:
    """Group-normalized advantages, weighted by an adversary over bins of difficulty.

    Args:
      edges: of the bins, in pass rate.
      rate: of the moving average of losses (β).
      temperature: how sharply the adversary prefers high losses (η).
      mixing: share of the weight that is spread evenly (γ).
      max_weight: largest weight.
      by_share: divide a bin's loss by its share of the batch, as the authors' scripts do.
      kl_coefficient: weight of the KL to the reference (κ); with 0 no reference is needed.
      clip_low, clip_high: half-widths of the trust region (ε_low, ε_high).
      epsilon: added to the standard deviation of a group's rewards.
      bins: rollouts -> bin [B], where pass rates of a longer history are kept; None: of the batch.
    """
    weights = hard_bins_first(edges, rate, temperature, mixing, max_weight, by_share, bins)
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            transforms=[weights],
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            regularizers=[kl_penalty(kl_coefficient)] if kl_coefficient else [],
            aggregation=token_mean(),
        )
    )


METHOD = Method(
    gdro,
    "Group Distributionally Robust Optimization-Driven Reinforcement Learning for LLM Reasoning",
    "https://github.com/kishanpb/verl-gdro",
    changes="advantage, regularizer",
    left_out="pass rates over many visits of a prompt; numbers of rollouts by difficulty",
    reports=(
        "Qwen3 base 1.7B, 4B, 8B over GRPO: pass@8 up by 9.7, 13.1 and 9.0 % (weights), by 10.6, "
        "10.6 and 9.2 % (numbers of rollouts)"
    ),
    traps=(
        "`by_share` makes a rare bin's loss extreme; groups of equal rewards carry weight without "
        "a gradient; the authors' surrogate loss is about 0 on average, so their weights follow "
        "noise"
    ),
)
