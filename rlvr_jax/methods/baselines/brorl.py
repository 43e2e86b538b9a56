"""BroRL: hundreds of rollouts per prompt, for models that no longer improve with more steps.

Hu et al. 2025, "BroRL: Scaling Reinforcement Learning via Broadened Exploration",
https://arxiv.org/abs/2510.01180

    A_i  = (R_i - mean) / (std + 1e-6) over N = 512 rollouts, std with n - 1
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ n_i, over groups of mixed outcomes

N is a setting of the run: `--samples-per-prompt 512` with fewer prompts, and `--sampling-batches`
if a batch does not fit in memory. Sampled tokens always add probability to correct tokens, and
unsampled ones may remove it. A large N leaves fewer tokens unsampled
(`rlvr_jax.analysis.updates.mass_balance`). It also leaves fewer groups that are all correct or all
incorrect. The paper's constants were not read: clip and rounds are DAPO's.

Left out: the KL to a renewed reference of ProRL, the run that the paper continues.
Reports: A 1.5B model that stopped improving after 3000 steps of ProRL improves again at N = 512.
More of the prompts are useful (no numbers).
Traps: The method does not set the group size. With a usual size it is only DAPO's filter and clip.
The theorem has a factor 1/N, so it determines the sign of a step and not its size.
"""

from typing import Any

from rlvr_jax.experience import experience, refill, uniform
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.types import Method, Recipe, arguments_of
from rlvr_jax.types.hyperparameters import MaxRounds


@arguments_of(clipped_objective, "clip_low", "clip_high", "epsilon", clip_high=0.28)
def brorl(max_rounds: MaxRounds = 10, **clip: Any) -> Recipe:
    """Applies clip-higher with the token mean to large groups of mixed outcomes."""
    return Recipe(clipped_objective(**clip), experience(stages=[refill(uniform, max_rounds)]))


METHOD = Method(
    brorl, changes="sampling, selection, surrogate, aggregation", evidence="reconstruction"
)
