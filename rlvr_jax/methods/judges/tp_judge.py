"""TP as a judge: a prover checks the steps of a solution; unreadable steps are ungraded.

"Theorem Prover as a Judge for Synthetic Data Generation" (RLTPF)

    r    = 1 if all steps hold, 0 if one does not, none if one cannot be read
    A_i  = (r_i - mean) / (std + 1e-6), std with n - 1, over the graded rows
    loss = mean_i (1/n_i) Σ_t PPO clip

A reconstruction. The prover here is exact arithmetic on the lines of a response. With
`behind_prompt`, the first step begins in the prompt, as after "3 + 4 =". The lines of
`discussed_sums` are formal steps, and its other responses cannot be read.

Left out: a theorem prover and the model that formalizes steps for it (`autoformalise` of
`verifiers.texts.tp_judge`), as no model that ships can. The allocation of solutions to imitation
and pairs (`allocation`), as the verdict is a reward.
Reports: 3508 samples, in %: Mistral-7B 5.56 on MultiArith, Llama-2-7B 6.00 on SVAMP. Llama-3.1-8B
on GSM8K: 83.75; with all solutions 79.60.
Traps: The reward is ours: valid steps without progress are rewarded. Unreadable responses are
ungraded, so training uses short and algebraic ones. Groups with one graded response do not train.
"""

from typing import Any

from rlvr_jax.experience import column, experience, grade_also, plain_outcome, shape, total
from rlvr_jax.objectives import clipped_objective, rollout_mean_token_mean
from rlvr_jax.types import Method, Recipe, Shown, arguments_of
from rlvr_jax.types.hyperparameters import Finite
from rlvr_jax.verifiers.checks import Check


@arguments_of(clipped_objective, "clip_low", "clip_high", "epsilon")
def tp_judge(outcome_weight: Finite = 0.0, behind_prompt: bool = False, **clip: Any) -> Recipe:
    """Applies GRPO to the validity of all steps, plus `outcome_weight` times the outcome.

    Args:
      outcome_weight: weight of the outcome; the validity has the weight 1.
      behind_prompt: check prompt and response as one text: the first step begins in the prompt.
    """
    check = Check("rlvr_jax.verifiers.texts.tp_judge:check_lines")
    proved = grade_also(check, ["false_steps"], "proved", behind_prompt)
    reward = {"proved": column(0), "outcome": plain_outcome}
    stages = [proved, shape(total(reward, {"outcome": outcome_weight}))]
    objective = clipped_objective(aggregation=rollout_mean_token_mean(), **clip)
    return Recipe(objective, experience(stages=stages))


METHOD = Method(
    tp_judge,
    changes="reward",
    evidence="reconstruction",
    shown=Shown("discussed_sums", "experience/reward/proved"),
)
