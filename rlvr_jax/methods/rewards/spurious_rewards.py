"""Spurious rewards: a control whose reward does not depend on the response.

"Exploration v.s. Exploitation: Rethinking RLVR through Clipping, Entropy, and Spurious Reward",
https://github.com/ruixin31/Spurious_Rewards

    R_i  = 1 with probability γ, else 0
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = Σ PPO clip / Σ n_i

In expectation over the rewards, the gradient of a token's objective is

    μ ρ (1[ρ < 1 - ε] - 1[ρ > 1 + ε]) ∇ log p,   μ = E[max(A, 0)]

Without the clip it is 0. With the clip it pulls ρ back to 1. Entropy falls with the clip and rises
without it (`clipped=False`). Use this control with several seeds to judge a small gain of another
reward. γ is `chance`.

Reports: MATH500 with random rewards, in %: Qwen2.5-Math-7B about 53 to 68, R1-Distill-Llama-8B 65.6
to 79, Qwen2.5-Math-1.5B 44 to 46.
Traps: Zero in expectation over rewards is not zero in a batch. Unclipped runs may explode (about
step 150). `inverted_outcome` rewards no particular incorrect answer.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.experience import Reward, Shaping, experience, part, shape
from rlvr_jax.objectives import (
    group_normalized,
    importance_weighted,
    objective,
    ppo_clip,
    token_mean,
)
from rlvr_jax.objectives.statistics.group_order import group_rank
from rlvr_jax.types import Method, Recipe, Rollouts, Shown
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Epsilon, Unit


@part
def random_reward(chance: Unit = 0.5) -> Shaping:
    """1 with a probability and 0 else, a function of step, prompt and place in the group."""

    def apply(rollouts, state, moment):
        place = group_rank(jnp.zeros_like(rollouts.reward), rollouts.group, rollouts.rollout_id)
        # Ungraded rows have groups of their own and their rewards are not read.
        prompt = jnp.asarray(moment.prompt)

        def sample(prompt, place):
            own = jax.random.fold_in(jax.random.fold_in(moment.key, prompt), place)
            return jax.random.bernoulli(own, chance)

        return jax.vmap(sample)(prompt, place).astype(rollouts.reward.dtype), state, {}

    return Shaping(apply)


def inverted_outcome(rollouts: Rollouts) -> Float[Array, "B"]:
    """1 - outcome: rewards incorrect responses."""
    return 1 - rollouts.outcome


def spurious_rewards(
    chance: Unit = 0.5,
    control: Reward | Shaping | None = None,
    clipped: bool = True,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """Applies GRPO with the token mean and a reward that ignores correctness.

    Args:
      chance: probability of a random reward of 1 (γ).
      control: another reward, such as `inverted_outcome`, or `column(k)` for a reward of the task
        such as its format; None: the random one.
      clipped: whether there is a trust region; False: the ratio is unbounded.
    """
    reward = random_reward(chance) if control is None else control
    bounds = ppo_clip(clip_low, clip_high)
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
    changes="reward",
    shown=Shown("brackets", "experience/shaped_fraction"),
)
