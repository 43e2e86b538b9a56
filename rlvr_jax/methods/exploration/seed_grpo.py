"""SEED-GRPO: smaller steps on prompts whose answers disagree.

"SEED-GRPO: Semantic Entropy Enhanced GRPO for Uncertainty-Aware Policy Optimization",
https://github.com/Dreamer312/SEED-GRPO

    p_k  = Σ_{i with answer k} exp ℓ_i / Σ_i exp ℓ_i, ℓ_i the mean old log-prob of the tokens
    SE   = -Σ_k p_k ln p_k,  u = SE / ln n in [0, 1]
    A_i  = (R_i - mean) / (1 + α u)
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) / Σ n_i

A reconstruction from a review of the paper and a third-party port, which has this f and α
(`entropy_rate`). The paper's f is linear, exponential or focal in u; its α was not found. The paper
estimates SE by -mean_k ln p_k. The clip of 0.2 is ours.

Left out: answers with one meaning in different words.
Reports: Qwen2.5-Math-7B, in %: AIME24 56.7, AMC 68.7, MATH 83.4, Minerva 34.2, OlympiadBench 48.0.
Traps: At the port's α, advantages fall by at most 4 %. The order in a group never changes. Answers
to hard prompts disagree as well, so hard prompts lose weight. In the port, every unread answer is a
separate cluster.
"""

from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.objectives import Transform, clipped_objective, group_centered, masked_mean
from rlvr_jax.objectives.statistics.groups import group_count, has_tokens
from rlvr_jax.objectives.statistics.semantic_entropy import semantic_entropy
from rlvr_jax.types import LOSS_ON_BRACKETS, Method, Recipe, part, replace
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Finite

Rows = Float[Array, "B"]
Decay = Callable[[Array, float], Array]
"""(u [B], α) -> factor of the advantage [B]."""


def hyperbolic_decay(entropy: Rows, rate: float) -> Rows:
    """1 / (1 + α u)."""
    return 1 / (1 + rate * entropy)


def linear_decay(entropy: Rows, rate: float) -> Rows:
    """1 - α u."""
    return 1 - rate * entropy


def exponential_decay(entropy: Rows, rate: float) -> Rows:
    """exp(-α u)."""
    return jnp.exp(-rate * entropy)


def focal_decay(entropy: Rows, rate: float) -> Rows:
    """(1 - u)^α."""
    return (1 - entropy) ** rate


@part(reads={"logp", "answer", "batch_statistics"}, writes={"advantage"}, once=True)
def scale_by_semantic_entropy(rate: Finite, decay: Decay = hyperbolic_decay) -> Transform:
    """Shrinks the advantages of a group by the disagreement of its answers: A' = A f(u; α).

    u is the `relative_semantic_entropy` of the rollouts with tokens.

    Args:
      rate: reduction at full disagreement (α).
      decay: factor as a function of u (f).
    Metrics: semantic_entropy_scale (mean factor over the rollouts with tokens).
    """

    def apply(signals, context, state):
        rollouts, written = context.rollouts, has_tokens(signals.mask)
        loglik = masked_mean(context.old_logp, signals.mask, axis=1)
        u = relative_semantic_entropy(loglik, rollouts.records["answer"], rollouts.group, written)
        scale = decay(u, rate)
        signals = replace(signals, advantage=signals.advantage * scale[:, None])
        return signals, state, {"semantic_entropy_scale": masked_mean(scale, written)}

    return apply


def relative_semantic_entropy(
    loglik: Rows,
    answer: Int[Array, "B"],
    group: Int[Array, "B"],
    where: Bool[Array, "B"] | None = None,
) -> Rows:
    """u = SE / ln n in [0, 1], n the rollouts of the group that count; 0 for a group of one.

    Args:
      loglik: mean log-prob of the tokens of each row, nats, [B].
      answer: class of the final answer of each row, int [B].
      group: group of each row, int [B].
      where: rows that count, bool [B]; None: all.
    """
    number = jnp.maximum(group_count(group, where), 1)
    largest = jnp.log(number.astype(loglik.dtype))
    entropy = semantic_entropy(loglik, answer, group, where)
    return jnp.clip(entropy / jnp.where(largest > 0, largest, 1), 0, 1)


def seed_grpo(
    entropy_rate: Finite = 0.0417,
    decay: Decay = hyperbolic_decay,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
) -> Recipe:
    """Scales down centered rewards by the semantic entropy of the group.

    Args:
      entropy_rate: reduction of the advantage at full disagreement (α).
      decay: f: `hyperbolic_decay`, `linear_decay`, `exponential_decay` or `focal_decay`.
    """
    return Recipe(
        objective=clipped_objective(
            clip_low,
            clip_high,
            advantage=group_centered(),
            transforms=[scale_by_semantic_entropy(entropy_rate, decay)],
        )
    )


METHOD = Method(seed_grpo, changes="advantage", evidence="reconstruction", shown=LOSS_ON_BRACKETS)
