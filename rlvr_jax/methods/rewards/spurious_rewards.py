"""Spurious rewards: what a reward teaches that knows nothing of the response; a control.

"Exploration v.s. Exploitation: Rethinking RLVR through Clipping, Entropy, and Spurious Reward"

    R_i  = 1 with a chance of γ, whatever the response says
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = Σ PPO clip / Σ n_i

In expectation over the rewards a token's gradient is μ ρ (1[ρ < 1 - ε] - 1[ρ > 1 + ε]) ∇ log p with
μ = E[max(A, 0)]: nothing without the clip, and with it a pull back to ρ = 1 (`clip_pull`,
`half_moment`). Entropy falls with the clip and rises without (`clipped=False`). To be run beside
any reward before a small gain is believed, with several seeds. Other controls take the place of the
random one as `control`: `inverted_outcome`, `column(k)` for a reward of the task such as its
format, or a vote of the majority (`intrinsic_rewards`).
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from rlvr_jax.experience import experience, shape
from rlvr_jax.objectives import (
    Reward,
    group_normalized,
    importance_weighted,
    objective,
    ppo_clip,
    token_mean,
)
from rlvr_jax.objectives.algebra.parts import Surrogate
from rlvr_jax.objectives.rewards.parts import Shaping
from rlvr_jax.objectives.statistics.group_order import group_rank
from rlvr_jax.objectives.statistics.groups import group_count
from rlvr_jax.objectives.statistics.ratios import token_ratio
from rlvr_jax.types import Method, Recipe, replace
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Epsilon, NonNegative, Positive, Unit
from rlvr_jax.types.parts import part
from rlvr_jax.types.rollouts import Rollouts

Tokens = Float[Array, "B T"]


Rows = Float[Array, "B"]


def inverted_outcome(rollouts: Rollouts) -> Rows:
    """1 - outcome: what is wrong is paid."""
    return 1 - rollouts.outcome


@part
def random_reward(chance: Unit = 0.5) -> Shaping:
    """1 with a chance and 0 else, whatever the response says.

    A row's draw depends on the step, its prompt and its place in the group.

    Args:
      chance: γ.
    """

    def apply(rollouts, state, moment):
        place = group_rank(jnp.zeros_like(rollouts.reward), rollouts.group, rollouts.rollout_id)
        # Rows without a verdict have groups of their own and are not looked at.
        prompt = jnp.asarray(moment.prompt)

        def draw(prompt, place):
            own = jax.random.fold_in(jax.random.fold_in(moment.key, prompt), place)
            return jax.random.bernoulli(own, chance)

        return jax.vmap(draw)(prompt, place).astype(rollouts.reward.dtype), state, {}

    return Shaping(apply)


def half_moment(chance: float, group_size: int, epsilon: float = 1e-6) -> float:
    """μ = E[max(A, 0)] of a row under random rewards of 0 and 1, A = (r - mean) / (std + ε).

    With k of N rows paid, std with n - 1: Σ_k P(k) (k / N) (1 - k / N) / (std_k + ε). Groups of
    equal rewards have A = 0 and count.

    Args:
      chance: γ, of a reward of 1.
      group_size: N.
      epsilon: ε.
    """
    total = 0.0
    for paid in range(1, group_size):
        share = paid / group_size
        deviation = math.sqrt(share * (1 - share) * group_size / (group_size - 1))
        ways = math.comb(group_size, paid) * chance**paid * (1 - chance) ** (group_size - paid)
        total += ways * share * (1 - share) / (deviation + epsilon)
    return total


def clip_pull(ratio: Tokens, low: float, high: float, moment: float) -> Tokens:
    """μ R (1[R < 1 - ε_low] - 1[R > 1 + ε_high]): the coefficient of ∇ log p in E[∇J]."""
    outside = (ratio < 1 - low).astype(ratio.dtype) - (ratio > 1 + high).astype(ratio.dtype)
    return moment * ratio * outside


def clip_magnitude(ratio: Tokens, low: float, high: float, moment: float) -> Tokens:
    """E|J - R A| = μ (max(R - 1 - ε_high, 0) + max(1 - ε_low - R, 0)): what the clip takes away.

    Beside it stands what there is without one, E|R A| = 2 μ R.
    """
    return moment * (jnp.maximum(ratio - 1 - high, 0) + jnp.maximum(1 - low - ratio, 0))


def damage(reward: Rows, right: Float[Array, "B"], group: Int[Array, "B"]) -> Rows:
    """Δ = (g n_w + f n_r) / N of a group: the advantage that its right rows lose by false rewards.

    Args:
      reward: of 0 and 1, as it was paid.
      right: 1 for right rows and 0 for wrong ones: n_r and n_w of N.
      group: id of the group of each row.
    """
    rights, wrongs = _numbers(right, group)
    unpaid = group_count(group, (right > 0.5) & (reward < 0.5)).astype(right.dtype)
    falsely = group_count(group, (right < 0.5) & (reward > 0.5)).astype(right.dtype)
    return (unpaid * wrongs + falsely * rights) / (rights + wrongs)


def expected_damage(right: Float[Array, "B"], group: Int[Array, "B"]) -> tuple[Rows, Rows]:
    """Mean and variance of Δ where each row is paid with a chance of ½: n_r n_w / N and a quarter.

    Small where almost all rows are right, or almost none.
    """
    rights, wrongs = _numbers(right, group)
    mean = rights * wrongs / (rights + wrongs)
    return mean, mean / 4


def _numbers(right, group):
    kind = right.dtype
    return (group_count(group, where).astype(kind) for where in (right > 0.5, right < 0.5))


@part
def clipped_noise(low: NonNegative, high: NonNegative, moment: Positive) -> Surrogate:
    """-E[J] = -μ (min(ρ, 1 + ε_high) - max(ρ, 1 - ε_low)): advantages are not read.

    With the mean over tokens it is what PPO's clip does by itself, without the noise of rewards.

    Args:
      low, high: half-widths of the trust region, at least 0.
      moment: μ = E[max(A, 0)], see `half_moment`.
    Source: "Exploration v.s. Exploitation: Rethinking RLVR through Clipping, Entropy, and Spurious
      Reward".
    """

    def prepare(signals, context):
        return replace(
            signals,
            ratio=token_ratio(context.stats.logp, context.old_logp, signals.mask),
            clip_low=jnp.full_like(signals.clip_low, low),
            clip_high=jnp.full_like(signals.clip_high, high),
        )

    def loss(signals, context):
        del context
        upper = jnp.minimum(signals.ratio, 1 + high)
        return -moment * (upper - jnp.maximum(signals.ratio, 1 - low))

    def remark(plan):
        if plan.updates_per_batch == 1:
            return "is constant: with one update per batch the ratio is exactly 1."
        return None

    return Surrogate(prepare, loss, remark)


def spurious_rewards(
    chance: float = 0.5,
    control: Reward | Shaping | None = None,
    clipped: bool = True,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """GRPO on the token mean on a reward that is not about being right.

    Args:
      chance: of a random reward of 1 (γ).
      control: another reward; None: the random one.
      clipped: with the trust region; else the ratio is unbounded.
    """
    reward = random_reward(chance) if control is None else control
    bounds = ppo_clip(low=clip_low, high=clip_high)
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            surrogate=bounds if clipped else importance_weighted(),
            aggregation=token_mean(),
        ),
        experience=experience(stages=[shape(reward)]),
    )


METHOD = Method(
    spurious_rewards,
    "Exploration v.s. Exploitation: Rethinking RLVR through Clipping, Entropy, and Spurious Reward",
    "https://github.com/ruixin31/Spurious_Rewards",
    changes="reward",
    reports=(
        "MATH500 with random rewards: Qwen2.5-Math-7B about 53 to 68, R1-Distill-Llama-8B 65.6 to "
        "79, Qwen2.5-Math-1.5B 44 to 46"
    ),
    traps=(
        "zero in expectation over rewards is not zero in a batch: run several seeds; unclipped "
        "runs may explode (about step 150); `inverted_outcome` rewards no wrong answer in "
        "particular"
    ),
)
