"""Pass@k advantages: rewards a set of k attempts by its best one.

"Pass@k Training", https://arxiv.org/abs/2508.10751 (the default); "Pass@K Policy Optimization",
https://arxiv.org/abs/2505.15201; best-of-n, https://arxiv.org/abs/2503.19595

    ρ    = 1 - C(n - c, k) / C(n, k), σ = √(ρ (1 - ρ))
    A⁺   = (1 - ρ) / (σ + 1e-6)
    A⁻   = (1 - ρ - C(n - c - 1, k - 1) / C(n - 1, k - 1)) / (σ + 1e-6)
    loss = Σ max(-A ρ_t, -A clip(ρ_t, 1 - ε, 1 + ε)) / Σ n_i

A⁺ and A⁻ are the advantages of correct and incorrect rollouts, for n rollouts of which c are
correct. A⁻ ≤ 0 ≤ A⁺, and they sum to 0. Prompts with more than n - k correct responses have
advantage 0. The estimators of the other papers are passed as `advantage`. k is 4 (of n = 32, from
memory of the paper, which also runs 8). The clip of 0.2 is GRPO's.

Reports: Qwen2.5-7B: pass@k rises and pass@1 does not fall. A later phase of pass@1 training gains
more (no numbers).
Traps: Only groups with few correct responses train. k = 1 is GRPO. A rollout is correct if its
reward is at least 1, so shaping below 1 makes all rollouts incorrect.
"""

from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from rlvr_jax.objectives import Transform, clipped_objective, rollout_advantage
from rlvr_jax.objectives.statistics.groups import group_count, group_max, group_std, group_sum
from rlvr_jax.types import LOSS_ON_BRACKETS, Method, Recipe, part
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Count, Positive


@part
def subset_normalized(k: Count, epsilon: Positive = 1e-6) -> Transform:
    """The mean of normalized advantages over all subsets of k rollouts that contain the rollout.

    A subset is rewarded by its best rollout. With ρ = ρ(n, c, k) and σ = √(ρ (1 - ρ)):
    correct: (1 - ρ) / (σ + ε); incorrect: (ρ(n - 1, c, k - 1) - ρ) / (σ + ε). They sum to 0 over a
    group.

    Args:
      k: size of the subsets.
    """

    def advantage(n, c, correct):
        rate = pass_at_k(n, c, k)
        mean = jnp.where(correct, 1, pass_at_k(n - 1, c, k - 1))
        return (mean - rate) / (jnp.sqrt(rate * (1 - rate)) + epsilon)

    return _of_counts(k, advantage)


def pass_at_k(n: Int[Array, "..."], c: Int[Array, "..."], k: int) -> Float[Array, "..."]:
    """ρ(n, c, k) = 1 - Π_{j<k} (n - c - j) / (n - j); 0 for k = 0, exactly 0 and 1 at the ends.

    Args:
      n, c: rollouts of a prompt, and number of correct ones.
      k: attempts. Where n < k the result is 1 if any is correct, else 0.
    """
    missed = jnp.ones(n.shape, float)
    for j in range(k):
        left = jnp.maximum(n - c - j, 0).astype(float)
        missed = missed * jnp.where(n > j, left / jnp.maximum(n - j, 1).astype(float), 1)
    return jnp.where(c > 0, 1 - missed, 0)


def _of_counts(smallest: int, advantage: Callable) -> Transform:
    """An estimator from the counts of a group; 0 in groups of fewer than `smallest` rollouts."""

    def of_rollouts(rollouts):
        reward, group = rollouts.reward, rollouts.group
        correct = reward >= 1
        n, c = group_count(group), group_sum(correct.astype(jnp.int32), group)
        return jnp.where(n >= smallest, advantage(n, c, correct), 0).astype(reward.dtype)

    def remark(plan):
        if plan.group_size < smallest:
            return f"is 0 everywhere: it needs groups of at least {smallest} rollouts."
        return None

    return rollout_advantage(of_rollouts, remark=remark)


@part
def pass_at_k_weight(k: Count) -> Transform:
    """The weights of the unbiased gradient of pass@k, without a baseline.

    Of the subsets of k rollouts, each rewarded by its best: correct: k/n; incorrect:
    (k/n) ρ(n - 1, c, k - 1). An incorrect rollout is rewarded if its subset has a correct one.

    Args:
      k: attempts.
    """

    def advantage(n, c, correct):
        return k / n.astype(float) * jnp.where(correct, 1, pass_at_k(n - 1, c, k - 1))

    return _of_counts(k, advantage)


@part
def pass_at_k_centered(k: Count) -> Transform:
    """`pass_at_k_weight` minus (k/n) times the pass@k of the other rollouts.

    The baseline does not depend on the own reward, so the advantage has mean 0 in expectation.
    Groups must have more than k rollouts.

    Args:
      k: attempts.
    """

    def advantage(n, c, correct):
        own = jnp.where(correct, 1, pass_at_k(n - 1, c, k - 1))
        return k / n.astype(float) * (own - pass_at_k(n - 1, c - correct.astype(c.dtype), k))

    return _of_counts(k + 1, advantage)


@part
def pass_at_k_marginal(k: Count) -> Transform:
    """Correct: (k/n) (1 - ρ(n - 1, c - 1, k - 1)), the gain by the rollout; incorrect: 0.

    The baseline of each subset is the pass@(k - 1) without the rollout, so a correct rollout is
    rewarded only if the others fail.

    Args:
      k: attempts.
    """

    def advantage(n, c, correct):
        added = 1 - pass_at_k(n - 1, c - correct.astype(c.dtype), k - 1)
        return k / n.astype(float) * jnp.where(correct, added, 0)

    return _of_counts(k, advantage)


@part
def best_of_n(normalize: bool = True, epsilon: Positive = 1e-6) -> Transform:
    """A = (R_max - R_second) / (std + ε) for the best rollout of a group, 0 for all others.

    If several rollouts have the highest reward, none is rewarded. No advantage is negative.

    Args:
      normalize: divide by the standard deviation of the group (n - 1) plus ε.
    """

    def advantage(rollouts):
        reward, group = rollouts.reward, rollouts.group
        best = reward == group_max(reward, group)
        alone = (group_count(group, best) == 1) & (group_count(group) > 1)
        lead = jnp.where(best & alone, reward - group_max(reward, group, ~best), 0)
        return lead / (group_std(reward, group) + epsilon) if normalize else lead

    return rollout_advantage(advantage, remark=_no_rival)


def _no_rival(plan):
    if plan.group_size == 1:
        return "is 0 everywhere: a group of one has no second best."
    return None


def passk_advantage(
    advantage: Transform = subset_normalized(k=4),  # noqa: B008 (frozen)
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
) -> Recipe:
    """Applies a clipped ratio to an advantage for solving a prompt in k attempts.

    Args:
      advantage: `subset_normalized(k)`, `pass_at_k_weight(k)` (unbiased, without a baseline),
        `pass_at_k_centered(k)` and `pass_at_k_marginal(k)` (with two different baselines), or
        `best_of_n()`.
    """
    return Recipe(objective=clipped_objective(clip_low, clip_high, advantage=advantage))


METHOD = Method(
    passk_advantage,
    changes="advantage",
    rewards="binary",
    small={"advantage": subset_normalized(k=2)},
    shown=LOSS_ON_BRACKETS,
)
