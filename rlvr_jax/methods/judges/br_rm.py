"""BR-RM: trains a judge of two turns on which of two responses is better.

"Think Twice: Branch-and-Rethink Reasoning Reward Model"

    R    = 0 for the correct preference, -1 for the incorrect one, -100 for a broken format
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = Σ [PPO clip + β k3] / Σ n_i

The outcome is the correctness of the preference. A reward of the task (`column`) is 1 if the format
is correct. Randomize the order of the two responses for every prompt (`present`).

A reconstruction: the authors' environment was not available. `rlvr_jax.verifiers.texts.br_rm` has
the rule on the two turns and a comparison in two turns (`preferred`).

Left out: the second turn, whose prompt contains the first one.
Reports: BR-RM-Qwen-14B, in %: RewardBench 92.1, RM-Bench 85.9, RMB 74.7.
Traps: One malformed response at -100 reduces the difference between correct and incorrect to a
hundredth of a standard deviation, so the first phase learns only the format. Use `malformed=-2` to
avoid this. If the order of a prompt's responses is changed, its label must also change.
"""

from typing import Any

import jax.numpy as jnp

from rlvr_jax.experience import Shaping, experience, part, shape, shaping
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.types import Method, Recipe, arguments_of
from rlvr_jax.types.hyperparameters import Finite, NonNegativeInt


@part
def preference_reward(column: NonNegativeInt, malformed: Finite = -100.0) -> Shaping:
    """outcome - 1 where the format is correct, else `malformed`.

    Metrics: reward/format (fraction of the rows with a correct format), reward/preference (mean of
      outcome - 1 over them).
    """

    def reward(rollouts):
        form, own = rollouts.records["component_rewards"][:, column], rollouts.outcome - 1
        well_formed = form > 0.5
        preference = jnp.where(well_formed, own, jnp.nan)
        earned = jnp.where(well_formed, own, malformed)
        earned = jnp.where(jnp.isnan(form), jnp.nan, earned)
        return earned, {"reward/format": form, "reward/preference": preference}

    return shaping(reward, columns=column + 1)


@arguments_of(
    clipped_objective, "clip_low", "clip_high", "epsilon", "kl_coefficient", kl_coefficient=0.001
)
def br_rm(column: NonNegativeInt = 0, malformed: Finite = -100.0, **clip: Any) -> Recipe:
    """Applies GRPO with the token mean to preferences and their format.

    Args:
      column: index of the task's reward that is 1 if the format is correct.
      malformed: reward of a malformed response.
    """
    return Recipe(
        objective=clipped_objective(**clip),
        experience=experience(stages=[shape(preference_reward(column, malformed))]),
    )


METHOD = Method(br_rm, changes="reward", evidence="reconstruction")
