"""RLMT: chat with a thought before the answer; a reward model reads the answer only.

"Language Models that Think, Chat Better", https://github.com/princeton-pli/RLMT

    R    = a reward model of (prompt, the text after <response>)
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = Σ [PPO clip with dual clip + β k3 - c H] / Σ n_i

The reward is one of the task (`number`): a judge's, which reads `verifiers.texts.rlmt.visible`, or
one that the task computes. A response without a score leaves its group. The authors sample at
temperature 0.7 (`--temperature`) and score at 1; here log-probs are at the sampling temperature.

Left out: the reward model (`--judge` brings one); the warm start on thoughts of a larger model
Reports: Llama-3.1-8B and Qwen2.5-7B: 3 to 7 points on AlpacaEval2, WildBench and ArenaHardV2 over
the same without thoughts
Traps: the policy overfits the reward after half of the run; without the tag the thought reaches the
judge, unless strict; the first tag counts, even a quoted one; only the budget limits a thought
"""

from typing import Any

from rlvr_jax.experience import column, experience, shape, total
from rlvr_jax.objectives import clipped_objective, entropy_bonus, kl_penalty
from rlvr_jax.types import Method, Recipe, arguments_of
from rlvr_jax.types.hyperparameters import (
    DualClip,
    EntropyCoefficient,
    KLCoefficient,
    NonNegativeInt,
)


@arguments_of(clipped_objective, "clip_low", "clip_high", "epsilon")
def rlmt(
    number: NonNegativeInt = 0,
    kl_coefficient: KLCoefficient = 0.001,
    entropy_coefficient: EntropyCoefficient = 0.001,
    dual_clip: DualClip = 3.0,
    **clip: Any,
) -> Recipe:
    """GRPO on the token mean with a dual clip, a KL and an entropy bonus, on a preference score.

    Args:
      number: column of the task's rewards with the score.
    """
    terms = [kl_penalty(kl_coefficient)] if kl_coefficient else []
    terms += [entropy_bonus(entropy_coefficient)] if entropy_coefficient else []
    return Recipe(
        objective=clipped_objective(dual_clip=dual_clip, regularizers=terms, **clip),
        experience=experience(stages=[shape(total({"preference": column(number)}))]),
    )


METHOD = Method(rlmt, changes="reward")
