"""Length rewards: short right answers earn more; four published forms of it.

"Reinforcement Learning for Reasoning in Small LLMs" (Open-RS), https://arxiv.org/abs/2503.16219

    cosine    R = b + (a - b) (1 + cos(π n / L)) / 2, (a, b) = (1, ½) if right, (-1, -½) if wrong
    relative  R = outcome + λ, λ = ½ - (n - n_min) / (n_max - n_min), min(0, λ) if wrong (Kimi k1.5)
    overlong  R = outcome - f clip((n - (L - c)) / c, 0, 1) (DAPO)
    linear    R = outcome - r max(0, n - target)
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1;  loss = Σ PPO clip / Σ n_i

n counts tokens; the authors' functions count characters, against a limit of 1000. The cosine stands
in the place of the outcome: wrong answers earn more the longer they are. Behind L it would rise
again and is held. Open-RS adds a reward for the format, of half the weight. The linear form is
ours, with a target of three quarters of L, over which the rest of the budget costs 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from rlvr_jax.experience import experience, shape
from rlvr_jax.objectives import (
    group_normalized,
    overlong_excess,
    plain_outcome,
    total,
)
from rlvr_jax.objectives.arguments import check_at_least, check_count, check_finite
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.objectives.regularizers.preferences import outcome_is_right
from rlvr_jax.objectives.rewards.lengths import Rows
from rlvr_jax.objectives.rewards.parts import Shaping, shaping
from rlvr_jax.objectives.statistics.groups import (
    group_count,
    group_deviation,
    group_max,
    group_spread,
    group_std,
)
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Epsilon
from rlvr_jax.types.parts import Function, part

Right = Bool[Array, "B"]


Groups = Int[Array, "B"]


def cosine_length(length: Rows, max_length: int, at_start: float, at_end: float) -> Rows:
    """b + (a - b) (1 + cos(π n / L)) / 2: a at length 0, b from L on.

    Args:
      length: n.
      max_length: L; without the bound the cosine would rise again behind it.
      at_start, at_end: a and b.
    Source: https://github.com/knoveleng/open-rs, "Demystifying Long Chain-of-Thought".
    """
    share = jnp.minimum(length / max_length, 1)
    return at_end + (at_start - at_end) * (1 + jnp.cos(math.pi * share)) / 2


def relative_length(length: Rows, right: Right, group: Groups) -> Rows:
    """λ = ½ - (n - n_min) / (n_max - n_min) over the group; min(0, λ) for wrong ones.

    0 where all lengths of the group are equal.
    Source: Kimi k1.5, https://arxiv.org/abs/2501.12599.
    """
    spread = group_spread(length, group)
    shortest = group_max(length, group) - spread
    share = 0.5 - (length - shortest) / jnp.where(spread > 0, spread, 1)
    return jnp.where(spread > 0, jnp.where(right, share, jnp.minimum(share, 0)), 0)


def shortness(length: Rows, target: float, rate: float) -> Rows:
    """-r max(0, n - target): each token over a target costs the same.

    Args:
      length: n.
      target: tokens that are free.
      rate: r, of a token.
    """
    return -rate * jnp.maximum(length - target, 0)


def standardized_length(length: Rows, right: Right, group: Groups, epsilon: float = 1e-6) -> Rows:
    """(n - mean) / (std + ε) over the right rows of the group, std with n; 0 on wrong ones.

    0 where fewer than two are right or their lengths are equal.

    Args:
      epsilon: ε, added to the deviation.
    """
    spread = group_std(length, group, ddof=0, where=right)
    scaled = group_deviation(length, group, where=right) / (spread + epsilon)
    return jnp.where(right & (group_count(group, right) > 1), scaled, 0)


@part
def length_cosine(
    max_length: int,
    right: tuple[float, float] = (1.0, 0.5),
    wrong: tuple[float, float] = (-1.0, -0.5),
) -> Function:
    """`cosine_length` with other ends for right and for wrong responses; it replaces the outcome.

    Args:
      max_length: L, tokens.
      right, wrong: what responses of length 0 and of length L earn.
    Raises:
      ValueError: no positive length, or an end that is not finite.
    """
    check_count(1, "length_cosine", max_length=max_length)
    for name, ends in (("right", right), ("wrong", wrong)):
        check_finite("length_cosine", **{f"{name}[{n}]": end for n, end in enumerate(ends)})

    def reward(rollouts):
        length = rollouts.length.astype(rollouts.outcome.dtype)
        good, bad = (cosine_length(length, max_length, *ends) for ends in (right, wrong))
        return jnp.where(outcome_is_right(rollouts.outcome), good, bad)

    return reward


@part
def short_of_group() -> Shaping:
    """`relative_length` of the response in its group, to be added to an outcome."""

    def reward(rollouts):
        length = rollouts.length.astype(rollouts.outcome.dtype)
        return relative_length(length, outcome_is_right(rollouts.outcome), rollouts.group)

    return shaping(reward)


@part
def length_excess(target: float, rate: float) -> Function:
    """`shortness`: -r for each token over the target.

    Raises:
      ValueError: a negative target or rate.
    """
    check_at_least(0, "length_excess", target=target, rate=rate)

    def reward(rollouts):
        return shortness(rollouts.length.astype(rollouts.outcome.dtype), target, rate)

    return reward


def cosine(max_length: int) -> Shaping:
    """The cosine in the place of the outcome."""
    return total({"cosine": length_cosine(max_length)})


def relative(max_length: int) -> Shaping:
    """Outcome and place between the shortest and the longest of the group."""
    del max_length
    return total({"outcome": plain_outcome, "relative": short_of_group()})


def overlong(max_length: int) -> Shaping:
    """Outcome and the soft penalty of the last fifth of the budget."""
    penalty = overlong_excess(max_length, max(1, max_length // 5))
    return total({"outcome": plain_outcome, "overlong": penalty})


def linear(max_length: int) -> Shaping:
    """Outcome and a price of every token over three quarters of the budget."""
    target = 0.75 * max_length
    excess = length_excess(target, 1 / (max_length - target))
    return total({"outcome": plain_outcome, "excess": excess})


def length_rewards(
    max_length: int = 3584,
    form: Callable[[int], Shaping] = cosine,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """GRPO on the token mean, on a reward that knows the length.

    Args:
      max_length: budget of response tokens (L).
      form: `cosine`, `relative`, `overlong` or `linear`.
    """
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low, clip_high=clip_high, advantage=group_normalized(epsilon)
        ),
        experience=experience(stages=[shape(form(max_length))]),
    )


METHOD = Method(
    length_rewards,
    "Reinforcement Learning for Reasoning in Small LLMs: What Works and What Doesn't",
    "https://arxiv.org/abs/2503.16219",
    changes="reward",
    small={"max_length": 8},
    left_out="the reward of the format",
    reports=(
        "Open-RS, an R1-distilled 1.5B: AMC23 63 to 80 %, AIME24 46.7 %, within 24 hours on 4 GPUs"
    ),
    traps=(
        "in all-right and all-wrong groups length alone decides, at full strength; cut answers are "
        "wrong and longest, so they are punished twice; give max_length the run's budget"
    ),
)
