"""Instruction following: checks by rule times a judge's word on what no rule can check.

"VerIF: Verification Engineering for Reinforcement Learning in Instruction Following",
https://github.com/THU-KEG/VerIF

    H    = mean of the checks of the prompt's hard constraints, the outcome of the task
    S    = 1 if a judge says that all soft constraints are kept, else 0; 1 without any
    R    = H S;   A_i = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = mean_i (1/n_i) Σ_t [PPO clip + β k3]

The judge is asked once about all soft constraints (`--judge … --judge-prompt constraints`, which
reads `Prompt.meta["soft"]`); its answer is the reward `number` of the task. S = 0 hides H, and an
answer that could not be judged leaves its group. H is the share of the checks on a task like
`instructions:partial=true`. Rules alone are hacked by texts without content: S is against that. The
authors' average of the clipped loss was not found; it is GRPO's.
"""

from __future__ import annotations

from collections.abc import Mapping

from rlvr_jax.experience import experience, shape
from rlvr_jax.objectives import (
    column,
    group_normalized,
    plain_outcome,
    rollout_mean_token_mean,
)
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.objectives.rewards.composition import Part, combined
from rlvr_jax.objectives.rewards.parts import Shaping
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Epsilon, KLCoefficient
from rlvr_jax.types.parts import part


@part
def product(parts: Mapping[str, Part]) -> Shaping:
    """R = Π_k r_k; a part of 0 hides the others, each of which has a curve of its own.

    Args:
      parts: r, by the name of the curve.
    Metrics: reward/<name>, the mean of each part, and what the parts tell.
    Raises:
      ValueError: no parts.
    """
    if not parts:
        raise ValueError("product: parts must be at least one, got none")

    def multiply(values):
        kind, whole = values[0].dtype, values[0]
        for value in values[1:]:
            whole = whole * value.astype(kind)
        return whole

    return combined(parts, multiply)


def instruction_following(
    number: int = 0,
    kl_coefficient: KLCoefficient = 0.001,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """GRPO on the product of hard and soft constraints.

    Args:
      number: of the task's rewards, the judge's word on the soft constraints.
    """
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low,
            clip_high=clip_high,
            advantage=group_normalized(epsilon),
            kl_coefficient=kl_coefficient,
            aggregation=rollout_mean_token_mean(),
        ),
        experience=experience(
            stages=[shape(product({"hard": plain_outcome, "soft": column(number)}))]
        ),
    )


METHOD = Method(
    instruction_following,
    "VerIF: Verification Engineering for Reinforcement Learning in Instruction Following",
    "https://github.com/THU-KEG/VerIF",
    changes="reward",
    left_out="the authors' judge (`--judge` brings one); the constraints that the authors generate",
    reports=(
        "gains on several benchmarks of instructions, also with unseen constraints; general "
        "abilities as before (abstract)"
    ),
    traps=(
        "rules alone are kept by texts without content; S = 0 hides every check; the released "
        "manager runs generated checks in the trainer, where one exception makes a batch's rewards "
        "-1"
    ),
)
