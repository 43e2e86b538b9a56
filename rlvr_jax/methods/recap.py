"""RECAP: of several objectives those that are still moving, or unsteady, count for more.

"Beyond Reasoning Gains: Mitigating General Capabilities Forgetting in Large Reasoning Models",
https://github.com/VietHoang1512/recap, of which notes and the README were read.

    L_k  = 1 - mean reward of the rows of objective k in the step
    c_k  = μ / μ',  i_k = σ / (μ + μ') over the newest W and the W steps before
    λ_k  = K softmax((c_k + i_k) / T),  1 before there are 2W steps
    loss = (1/K) Σ λ_k · GRPO's clipped loss over the tokens of objective k, without KL

Objectives are the kinds of the task's prompts: mix general tasks among those of reasoning, and
their kinds are replayed with weights. A saturated objective has c near 1 and i near 0 and loses
against volatile ones. The README has s = α c + (1 - α) i with α = 0.5: `mix=0.5`. That policy
losses give way to 1 - reward is our reading; theirs measures losses.
"""

from rlvr_jax.experience import cells_by_kind, experience, shuffled_epochs
from rlvr_jax.objectives import (
    group_normalized,
    objective,
    ppo_clip,
    reweight_cells,
    token_mean,
)
from rlvr_jax.types import Method, Recipe


def recap(
    window: int = 10,
    temperature: float = 5.0,
    mix: float | None = None,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    epsilon: float = 1e-6,
) -> Recipe:
    """GRPO without KL whose kinds of prompts are weighed by how their rewards move.

    Args:
      window: steps of each of two windows (W).
      temperature: of the softmax over objectives (T).
      mix: share of the convergence in the priority (α); None: convergence and instability add up.
      clip_low, clip_high: half-widths of the trust region (ε).
      epsilon: added to the standard deviation of a group's rewards.
    """
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            transforms=[reweight_cells(window, temperature, mix)],
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            aggregation=token_mean(),
        ),
        experience=experience([shuffled_epochs(), cells_by_kind()]),
    )


METHOD = Method(
    recap,
    "Beyond Reasoning Gains: Mitigating General Capabilities Forgetting in Large Reasoning Models",
    "https://github.com/VietHoang1512/recap",
    changes="weight, curriculum",
    evidence="reconstruction",
    left_out="objectives with a supervised loss",
    reports=(
        "Qwen2.5-VL-7B: LISA IoU 65.1 falls to 57.6 with reasoning alone, with replay 67.2; "
        "MathVerse 26.3 to 40.8"
    ),
    traps=(
        "a task of one kind of prompts is plain GRPO; before 20 steps weights are 1; with T = 5 "
        "they stay near 1, and the README's half more so"
    ),
)
