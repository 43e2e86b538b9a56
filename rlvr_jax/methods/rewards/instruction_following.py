"""Instruction following: multiplies rule checks by a judge's verdict on the other constraints.

"VerIF: Verification Engineering for Reinforcement Learning in Instruction Following",
https://github.com/THU-KEG/VerIF

    H    = mean of the checks of the prompt's hard constraints, the outcome of the task
    S    = 1 if a judge finds all soft constraints satisfied, else 0; 1 without any
    R    = H S;   A_i = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = mean_i (1/n_i) Σ_t [PPO clip + β k3]

One request to the judge covers all soft constraints (`--judge … --judge-prompt constraints`, which
reads `Prompt.meta["soft"]`). The verdict is the reward `number` of the task. An ungraded response
leaves its group. H is the fraction of the checks on tasks like `number_lists` and
`instructions:partial=true`. The
authors' average of the clipped loss was not found; it is GRPO's.

Left out: the authors' judge (use `--judge`); the constraints that the authors generate.
Reports: gains on several benchmarks of instructions, also with unseen constraints; general
abilities do not change (abstract, no numbers).
Traps: Texts without content satisfy rules; S prevents that. S = 0 hides every check. The authors'
manager runs generated checks in the trainer, where one exception makes a batch's rewards -1.
"""

import functools
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp

from rlvr_jax.experience import Shaping, experience, plain_outcome, shape
from rlvr_jax.experience.rewards.composition import Part, column, combined
from rlvr_jax.objectives import clipped_objective, part, rollout_mean_token_mean
from rlvr_jax.types import Method, Recipe, Shown, arguments_of
from rlvr_jax.types.hyperparameters import NonNegativeInt


@part
def product(parts: Mapping[str, Part]) -> Shaping:
    """R = Π_k r_k.

    Args:
      parts: r, by the name of the metric.
    Metrics: reward/<name> (mean of each part); those of the parts; vetoed_fraction (rows with a
      reward of 0 and a part above 0).
    """
    if not parts:
        raise ValueError("product: parts must be at least one, got none")

    def multiply(values):
        kind, whole = values[0].dtype, values[0]
        for value in values[1:]:
            whole = whole * value.astype(kind)
        vetoed = (whole == 0) & functools.reduce(jnp.logical_or, [value > 0 for value in values])
        vetoed = jnp.where(jnp.isnan(whole), jnp.nan, vetoed.astype(whole.dtype))
        return whole, {"vetoed_fraction": vetoed}

    return combined(parts, multiply)


@arguments_of(
    clipped_objective, "clip_low", "clip_high", "epsilon", "kl_coefficient", kl_coefficient=0.001
)
def instruction_following(number: NonNegativeInt = 0, **clip: Any) -> Recipe:
    """Applies GRPO to the product of hard and soft constraints.

    Args:
      number: index of the task's reward with the judge's verdict on the soft constraints.
    """
    return Recipe(
        objective=clipped_objective(aggregation=rollout_mean_token_mean(), **clip),
        experience=experience(
            stages=[shape(product({"hard": plain_outcome, "soft": column(number)}))]
        ),
    )


METHOD = Method(
    instruction_following,
    changes="reward",
    shown=Shown(
        "number_lists",
        "experience/vetoed_fraction",
        settings={
            "judge": "rlvr_jax.tasks.sketches.number_lists:judge",
            "judge_prompt": "constraints",
        },
    ),
)
