"""NGRPO: adds a virtual perfect response to every group, so that all-incorrect groups are trained.

"NGRPO: Negative-enhanced Group Relative Policy Optimization",
https://github.com/nangongrui-ngr/NGRPO

    A_i  = (R_i - μ) / (s + 1e-6), μ and s (n - 1) over the N rewards and M entries of R_max
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε_neg, 1 + ε_pos)) / Σ n_i over the remaining groups

M is `num_virtual`. With M = 1, an all-incorrect group of 0/1 rewards has A = -1/√(N + 1). Groups in
which every reward is R_max are dropped. The clip is narrower below, because negative advantages
dominate. An incorrect group of one has A < 0 by the formula. In the authors' code, its advantage is
its reward. They drop groups before a batch is split into updates, this recipe within each update.

Reports: Qwen2.5-Math-7B: above PPO, GRPO, DAPO and PSR-NSR in the area under pass@k on MATH500, AMC
and AIME25 (no numbers).
Traps: Shaped rewards above `max_reward` change the sign of the advantage. The advantage of an
all-incorrect group depends only on its size and is small in large groups. Mixed groups have lower
advantages than in GRPO.
"""

from rlvr_jax.objectives import group_all_equal, has_tokens, mean_with_virtual, std_with_virtual
from rlvr_jax.objectives.advantages.group_relative import relative_to
from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.types import LOSS_ON_BRACKETS, Method, Recipe, part, replace
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Epsilon, Finite, NonNegativeInt


@part(writes={"mask"})
def drop_perfect_groups(max_reward: Finite) -> Transform:
    """Takes groups whose rewards are all `max_reward` out of the loss and its denominators.

    Metrics: perfect_fraction (of the rollouts with tokens).
    """

    def apply(signals, context, state):
        reward, group = context.rollouts.reward, context.rollouts.group
        perfect = group_all_equal(reward, group) & (reward == max_reward)
        fraction = masked_mean(perfect, has_tokens(signals.mask)).astype(reward.dtype)
        signals = replace(signals, mask=signals.mask & ~perfect[:, None])
        return signals, state, {"perfect_fraction": fraction}

    return apply


def ngrpo(
    max_reward: Finite = 1.0,
    num_virtual: NonNegativeInt = 1,
    clip_low: ClipLow = 0.16,
    clip_high: ClipHigh = 0.24,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """Normalizes advantages by groups with virtual perfect rewards, with an asymmetric clip.

    Args:
      max_reward: highest reward of the task (R_max).
      num_virtual: virtual rewards per group (M).
    """
    mean = mean_with_virtual(max_reward, num_virtual)
    std = std_with_virtual(max_reward, num_virtual)
    advantage = relative_to(mean, scale=std, epsilon=epsilon)
    transforms = [drop_perfect_groups(max_reward)]
    objective = clipped_objective(clip_low, clip_high, advantage=advantage, transforms=transforms)
    return Recipe(objective)


METHOD = Method(
    ngrpo,
    changes="advantage, surrogate, mask",
    baseline="other",
    shown=LOSS_ON_BRACKETS,
)
