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

from rlvr_jax.experience import experience, shape
from rlvr_jax.objectives import (
    Reward,
    Shaping,
    group_normalized,
    importance_weighted,
    objective,
    ppo_clip,
    random_reward,
    token_mean,
)
from rlvr_jax.types import Method, Recipe


def spurious_rewards(
    chance: float = 0.5,
    control: Reward | Shaping | None = None,
    clipped: bool = True,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    epsilon: float = 1e-6,
) -> Recipe:
    """GRPO on the token mean on a reward that is not about being right.

    Args:
      chance: of a random reward of 1 (γ).
      control: another reward; None: the random one.
      clipped: with the trust region; else the ratio is unbounded.
      clip_low, clip_high: half-widths of the trust region.
      epsilon: added to the standard deviation of a group's rewards.
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
