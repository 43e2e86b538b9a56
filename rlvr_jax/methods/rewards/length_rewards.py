"""Length rewards: four published rewards by which short correct responses earn more.

"Reinforcement Learning for Reasoning in Small LLMs" (Open-RS), https://arxiv.org/abs/2503.16219

    cosine    R = b + (a - b) (1 + cos(π n / L)) / 2, (a, b) = (1, ½) correct, (-1, -½) incorrect
    relative  R = outcome + λ, λ = ½ - (n - n_min) / (n_max - n_min), min(0, λ) if incorrect
    overlong  R = outcome - f clip((n - (L - c)) / c, 0, 1) (DAPO)
    linear    R = outcome - r max(0, n - target)
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1;  loss = Σ PPO clip / Σ n_i

- n counts tokens, L is `max_length`. The authors' functions count characters, with a limit of 1000.
- The cosine replaces the outcome, and longer incorrect responses earn more. Beyond L it would rise
again, so it is constant there. Open-RS adds a format reward of half the weight.
- The relative form is Kimi k1.5's, https://arxiv.org/abs/2501.12599.
- The linear form is ours: target is 0.75 L, and r is 1 / (L - target).

Left out: the reward of the format.
Reports: Open-RS, an R1-distilled 1.5B: AMC23 63 to 80 %, AIME24 46.7 %, within 24 hours on 4 GPUs.
Traps: In groups of equal outcomes, only length decides, at full strength. Truncated responses are
incorrect and longest, so they are penalized twice. `max_length` must be the run's budget.
"""

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from rlvr_jax.experience import experience, overlong_excess, plain_outcome, shape, total
from rlvr_jax.experience.rewards.parts import Shaping, shaping
from rlvr_jax.objectives import clipped_objective, group_max, group_spread
from rlvr_jax.types import Function, Method, Recipe, Shown, arguments_of, is_correct, part
from rlvr_jax.types.hyperparameters import Count, MaxLength, NonNegative

CORRECT, INCORRECT = (1.0, 0.5), (-1.0, -0.5)  # (a, b) of the cosine


@part
def length_cosine(max_length: Count) -> Function:
    """b + (a - b) (1 + cos(π n / L)) / 2, and b beyond L, in place of the outcome.

    Source: https://github.com/knoveleng/open-rs, "Demystifying Long Chain-of-Thought".
    """

    def reward(rollouts):
        length = rollouts.length.astype(rollouts.outcome.dtype)
        fall = 1 + jnp.cos(math.pi * jnp.minimum(length / max_length, 1))
        good, bad = (end + (start - end) * fall / 2 for start, end in (CORRECT, INCORRECT))
        return jnp.where(is_correct(rollouts.outcome), good, bad)

    return reward


@part
def short_of_group() -> Shaping:
    """λ = ½ - (n - n_min) / (n_max - n_min) over the group; min(0, λ) on incorrect rows.

    0 where all lengths of the group are equal.
    """

    def reward(rollouts):
        length = rollouts.length.astype(rollouts.outcome.dtype)
        spread = group_spread(length, rollouts.group)
        shortest = group_max(length, rollouts.group) - spread
        gain = 0.5 - (length - shortest) / jnp.where(spread > 0, spread, 1)
        correct = is_correct(rollouts.outcome)
        return jnp.where(spread > 0, jnp.where(correct, gain, jnp.minimum(gain, 0)), 0)

    return shaping(reward)


@part
def length_excess(target: NonNegative, rate: NonNegative) -> Function:
    """-r max(0, n - target): each token over a target has the same price r."""

    def reward(rollouts):
        length = rollouts.length.astype(rollouts.outcome.dtype)
        return -rate * jnp.maximum(length - target, 0)

    return reward


def cosine(max_length: int) -> Shaping:
    """The cosine in place of the outcome."""
    return total({"cosine": length_cosine(max_length)})


def relative(max_length: int) -> Shaping:
    """The outcome plus the place between the shortest and the longest of the group."""
    return total({"outcome": plain_outcome, "relative": short_of_group()})


def overlong(max_length: int) -> Shaping:
    """The outcome minus a soft penalty in the last fifth of the budget."""
    penalty = overlong_excess(max_length, max(1, max_length // 5))
    return total({"outcome": plain_outcome, "overlong": penalty})


def linear(max_length: int) -> Shaping:
    """The outcome minus a price for each token over three quarters of the budget."""
    target = 0.75 * max_length
    excess = length_excess(target, 1 / (max_length - target))
    return total({"outcome": plain_outcome, "excess": excess})


@arguments_of(clipped_objective, "clip_low", "clip_high", "epsilon")
def length_rewards(
    max_length: MaxLength = 3584, form: Callable[[int], Shaping] = cosine, **clip: Any
) -> Recipe:
    """Applies GRPO with the token mean and a reward that depends on the length.

    Args:
      form: `cosine`, `relative`, `overlong` or `linear`.
    """
    return Recipe(
        objective=clipped_objective(**clip),
        experience=experience(stages=[shape(form(max_length))]),
    )


METHOD = Method(
    length_rewards,
    "Reinforcement Learning for Reasoning in Small LLMs: What Works and What Doesn't",
    "https://arxiv.org/abs/2503.16219",
    changes="reward",
    small={"max_length": 8},
    shown=Shown("brackets", "experience/shaped_fraction"),
)
