"""BR-RM: a judge that looks twice is trained on which answer is better.

"Think Twice: Branch-and-Rethink Reasoning Reward Model"

    R    = 0 for the right preference, -1 for the wrong one, -100 where a turn breaks the format
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = Σ [PPO clip + β k3] / Σ n_i

The outcome says whether the preference is right, a reward of the task (`column`) whether the format
is kept. One malformed answer squeezes right and wrong to a hundredth of a deviation: the first
phase learns the format alone; `malformed=-2` does not. The released environment was not available,
so this is a reconstruction; the rule on the two texts is `rlvr_jax.verifiers.texts.br_rm`, and so
is a comparison in two turns (`preferred`). The order of the two answers should be drawn for every
prompt (`present`).
"""

import jax.numpy as jnp

from rlvr_jax.experience import experience, shape
from rlvr_jax.objectives import group_normalized
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.objectives.rewards.parts import Shaping, judged_mean
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Epsilon, Finite, KLCoefficient
from rlvr_jax.types.parts import part


@part
def preference_reward(column: int, malformed: Finite = -100.0) -> Shaping:
    """outcome - 1 where the format is kept, so 0 or -1, else `malformed`.

    Args:
      column: of the task's rewards, 1 where the format is kept.
      malformed: the reward where it is not.
    Reads: outcome, component_rewards. Metrics: reward/format, reward/preference (of those that keep
      it).
    Source: BR-RM.
    """

    def apply(rollouts, state, moment):
        del moment
        form, own = rollouts.component_rewards[:, column], rollouts.outcome - 1
        kept = form > 0.5
        metrics = {
            "reward/format": judged_mean(form, rollouts),
            "reward/preference": judged_mean(jnp.where(kept, own, jnp.nan), rollouts),
        }
        reward = jnp.where(kept, own, malformed)
        return jnp.where(jnp.isnan(form), jnp.nan, reward), state, metrics

    reads = frozenset({"component_rewards"})
    return Shaping(apply, reads=reads, columns=column + 1)


def br_rm(
    column: int = 0,
    malformed: float = -100.0,
    kl_coefficient: KLCoefficient = 0.001,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """GRPO on the token mean, on preferences and their format.

    Args:
      column: of the task's rewards, 1 where the format is kept.
      malformed: reward where it is not.
    """
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low,
            clip_high=clip_high,
            advantage=group_normalized(epsilon),
            kl_coefficient=kl_coefficient,
        ),
        experience=experience(stages=[shape(preference_reward(column, malformed))]),
    )


METHOD = Method(
    br_rm,
    "Think Twice: Branch-and-Rethink Reasoning Reward Model",
    "",
    changes="reward",
    evidence="reconstruction",
    left_out="the second turn, in whose prompt the first one stands",
    reports="BR-RM-Qwen-14B: RewardBench 92.1, RM-Bench 85.9, RMB 74.7",
    traps=(
        "one malformed answer at -100 hides right from wrong in its group (`malformed=-2` does "
        "not); draw the order of the two answers for each prompt, and turn its label with it"
    ),
)
