"""SALU: rewards abstention on unanswerable questions, and penalizes confident errors most.

"Harnessing RLHF for Robust Unanswerability Recognition and Trustworthy Response Generation in LLMs"

    |              | correct      | incorrect    | abstains |
    | answerable   | 1            | -c           | -½       |
    | unanswerable | -(½ + ½ c)   | -(½ + ½ c)   | 1        |    c: confidence of the response
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1;  loss = Σ PPO clip / Σ n_i

A reconstruction: the abstract has no equation. The reward is the smallest one that penalizes
confident errors most and prevents constant abstention. Three rewards of the task (`columns`) are
answerability, abstention and c. The task `abstention` has them: the policy states c, and half of
its prompts are unanswerable.

Left out: the supervised phase before RL.
Reports: the authors' C-IR_Answerability: above pipelines of classifiers, fewer hallucinations by
human judgement (no numbers).
Traps: The more frequent kind of prompts determines how often the policy abstains. An incorrect
answer with c below ½ costs less than abstaining, so the policy can learn to guess. The policy can
lower its own confidence. Where answers are rarely correct, it stops answering: on `abstention`, it
abstains from 98 % of the questions after 20 steps (one seed).
"""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp

from rlvr_jax.experience import Shaping, experience, part, shape, shaping
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.types import Method, Recipe, Shown, arguments_of, is_correct
from rlvr_jax.types.hyperparameters import NonNegativeInt


@part
def confident_abstention(
    answerable: NonNegativeInt = 0, abstained: NonNegativeInt = 1, confidence: NonNegativeInt = 2
) -> Shaping:
    """The table of the module; NaN (no reward) where a column is NaN or c is outside [0, 1].

    Metrics: reward/abstained (fraction of the rows that abstain), reward/correct_of_answered
      (fraction of the answered answerable questions), reward/hallucinated (fraction of the
      unanswerable questions that are answered), reward/penalized (fraction of the rows with a
      reward below 0).
    """
    columns = (answerable, abstained, confidence)

    def reward(rollouts):
        has, none, sure = (rollouts.records["component_rewards"][:, column] for column in columns)
        known, silent, correct = has > 0.5, none > 0.5, is_correct(rollouts.outcome)
        of_answerable = jnp.where(silent, -0.5, jnp.where(correct, 1.0, -sure))
        of_unanswerable = jnp.where(silent, 1.0, -(0.5 + 0.5 * sure))
        earned = jnp.where(known, of_answerable, of_unanswerable).astype(sure.dtype)
        usable = (sure >= 0) & (sure <= 1) & ~jnp.isnan(has) & ~jnp.isnan(none)

        def over(values, where):
            return jnp.where(where, values.astype(sure.dtype), jnp.nan)

        parts = {
            "reward/abstained": over(silent, ~jnp.isnan(none)),
            "reward/correct_of_answered": over(correct, known & ~silent),
            "reward/hallucinated": over(~silent, ~known & ~jnp.isnan(has)),
            "reward/penalized": over(earned < 0, usable),
        }
        return jnp.where(usable, earned, jnp.nan), parts

    return shaping(reward, columns=max(columns) + 1)


@arguments_of(clipped_objective, "clip_low", "clip_high", "epsilon")
def salu(columns: Sequence[NonNegativeInt] = (0, 1, 2), **clip: Any) -> Recipe:
    """Applies GRPO with the token mean to answers and abstentions by their confidence.

    Args:
      columns: indices of the task's rewards: answerable, abstained (0 or 1), confidence.
    """
    return Recipe(
        objective=clipped_objective(**clip),
        experience=experience(stages=[shape(confident_abstention(*columns))]),
    )


METHOD = Method(
    salu,
    changes="reward",
    evidence="reconstruction",
    shown=Shown("abstention", "experience/reward/penalized"),
)
