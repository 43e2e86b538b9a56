"""RLMT: chat with a thought before the answer; a reward model reads only the answer.

"Language Models that Think, Chat Better", https://github.com/princeton-pli/RLMT

    R    = a reward model of (prompt, the text after <response>)
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = Σ [PPO clip with dual clip + β k3 - c H] / Σ n_i

The reward is one of the task, at the index `number`. It is a computed one, or a judge's. With
`--judge-options visible=true` the judge reads `verifiers.texts.rlmt.visible`; with `visible=strict`
it reads [NULL] where a tag is missing. A response without the reward leaves its group. The judge of
`discussed_sums` prefers a short correct answer; its base model writes some thoughts. The authors
sample at temperature 0.7 (`--temperature`) and score at 1. Here both temperatures are
equal.

Left out: the authors' reward model, as its weights do not ship (use `--judge`); the warm start on
thoughts of a larger model.
Reports: 7B and 8B: 3 to 7 points over training without thoughts on AlpacaEval2, WildBench and
ArenaHardV2.
Traps: The policy overfits the reward after half of the run. A thought without the tag reaches the
judge, unless strict. The first tag counts, even if it is quoted.
"""

from typing import Any

from rlvr_jax.experience import column, experience, shape, total
from rlvr_jax.objectives import clipped_objective
from rlvr_jax.types import Method, Recipe, Shown, arguments_of
from rlvr_jax.types.hyperparameters import EntropyCoefficient, KLCoefficient, NonNegativeInt


@arguments_of(clipped_objective, "clip_low", "clip_high", "epsilon", dual_clip=3.0)
def rlmt(
    number: NonNegativeInt = 0,
    kl_coefficient: KLCoefficient = 0.001,
    entropy_coefficient: EntropyCoefficient = 0.001,
    **clip: Any,
) -> Recipe:
    """Applies GRPO with a dual clip, a KL and an entropy bonus to a preference score.

    Args:
      number: index of the task's reward that is the preference score.
    """
    terms = {"kl_coefficient": kl_coefficient, "entropy_coefficient": entropy_coefficient}
    stages = [shape(total({"preference": column(number)}))]
    return Recipe(clipped_objective(**terms, **clip), experience(stages=stages))


METHOD = Method(
    rlmt,
    changes="reward",
    shown=Shown(
        "discussed_sums",
        "experience/reward/preference",
        settings={
            "judge": "rlvr_jax.tasks.sums.discussed_judge:preference",
            "judge_options": "visible=strict",
        },
    ),
)
