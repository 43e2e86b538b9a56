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

from collections.abc import Callable

from rlvr_jax.experience import experience, shape
from rlvr_jax.objectives import (
    Shaping,
    group_normalized,
    length_cosine,
    length_excess,
    objective,
    overlong_excess,
    plain_outcome,
    ppo_clip,
    short_of_group,
    token_mean,
    total,
)
from rlvr_jax.types import Method, Recipe


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
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    epsilon: float = 1e-6,
) -> Recipe:
    """GRPO on the token mean, on a reward that knows the length.

    Args:
      max_length: budget of response tokens (L).
      form: `cosine`, `relative`, `overlong` or `linear`.
      clip_low, clip_high: half-widths of the trust region.
      epsilon: added to the standard deviation of a group's rewards.
    """
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            aggregation=token_mean(),
        ),
        experience=experience(stages=[shape(form(max_length))]),
    )


METHOD = Method(
    length_rewards,
    "Reinforcement Learning for Reasoning in Small LLMs: What Works and What Doesn't",
    "https://arxiv.org/abs/2503.16219",
    changes="reward",
    left_out="the reward of the format",
    reports=(
        "Open-RS, an R1-distilled 1.5B: AMC23 63 to 80 %, AIME24 46.7 %, within 24 hours on 4 GPUs"
    ),
    traps=(
        "in all-right and all-wrong groups length alone decides, at full strength; cut answers are "
        "wrong and longest, so they are punished twice; give max_length the run's budget"
    ),
)
