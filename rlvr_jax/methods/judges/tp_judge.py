"""TP as a judge: a prover goes through the steps of a solution; what it cannot read is no verdict.

"Theorem Prover as a Judge for Synthetic Data Generation" (RLTPF)

    r    = 1 if all steps hold, 0 if one does not, none if one cannot be read
    A_i  = (r_i - mean) / (std + 1e-6), std with n - 1, over the rows with a verdict
    loss = mean_i (1/n_i) Σ_t PPO clip

As a reward it is ours; published is an allocation of solutions to imitation and to pairs
(`verifiers.texts.tp_judge.allocation`), and the loop that has a model state steps for the prover
(`autoformalise`). The prover here is exact arithmetic on the lines of a response. A right answer is
not asked for: steps that hold and lead nowhere are paid, so that `outcome_weight` adds the task's
verifier. Answers whose steps cannot be read are not wrong, but long and wordy ones: what is learned
from is short and algebraic.
"""

from rlvr_jax.experience import experience, grade_also, shape
from rlvr_jax.objectives import (
    column,
    group_normalized,
    plain_outcome,
    rollout_mean_token_mean,
    total,
)
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Epsilon
from rlvr_jax.verifiers.checks import Check


def tp_judge(
    outcome_weight: float = 0.0,
    behind_prompt: bool = False,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """GRPO on whether all steps of an answer hold.

    Args:
      outcome_weight: of the verifier's outcome beside it.
      behind_prompt: the first step begins with the prompt, as behind "3 + 4 =".
    """
    check = Check("rlvr_jax.verifiers.texts.tp_judge:check_lines")
    proved = grade_also(check, ["false_steps"], "proved", behind_prompt)
    reward = {"proved": column(0), "outcome": plain_outcome}
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low,
            clip_high=clip_high,
            advantage=group_normalized(epsilon),
            aggregation=rollout_mean_token_mean(),
        ),
        experience=experience(
            stages=[proved, shape(total(reward, {"outcome": outcome_weight}))],
        ),
    )


METHOD = Method(
    tp_judge,
    "Theorem Prover as a Judge for Synthetic Data Generation",
    "",
    changes="reward",
    evidence="reconstruction",
    left_out="the formaliser; a theorem prover; the allocation to imitation and preferences",
    reports=(
        "3508 samples: Mistral-7B 5.56 on MultiArith, Llama-2-7B 6.00 on SVAMP; Llama-3.1-8B "
        "GSM8K 83.75, from all solutions 79.60"
    ),
    traps=(
        "the reward is ours: steps that hold and lead nowhere are paid (`outcome_weight`); what "
        "cannot be read is no verdict, so short and algebraic answers are kept; a group with one "
        "verdict is silent"
    ),
)
