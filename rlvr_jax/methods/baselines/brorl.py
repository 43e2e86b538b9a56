"""BroRL: hundreds of rollouts per prompt, where more steps no longer help.

Hu et al. 2025, "BroRL: Scaling Reinforcement Learning via Broadened Exploration",
https://arxiv.org/abs/2510.01180

    A_i  = (R_i - mean) / (std + 1e-6) over N = 512 rollouts, std with n - 1
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ n_i, over groups of mixed outcomes

N is a setting of the run: `--samples-per-prompt 512` with fewer prompts, and `--sampling-batches`
if a batch does not fit at once. `rlvr_jax.analysis.updates.mass_balance` computes the argument for
N: sampled tokens always add probability to correct tokens, unsampled ones may remove it, and a
large N leaves fewer unsampled. In practice fewer groups are all correct or all incorrect.
The paper's constants were not read: the clip and the rounds are DAPO's.

Left out: the KL to a renewed reference of ProRL, the run that the paper continues
Reports: a 1.5B model that stopped improving after 3000 steps of ProRL improves again at N = 512;
more of the prompts are useful
Traps: sets no group size: with a usual size it is only DAPO's filter and clip; its theorem has a
factor 1/N, so it gives the sign of a step and not its size
"""

from typing import Any

from rlvr_jax.experience import experience, refill, uniform
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.types import Method, Recipe, arguments_of
from rlvr_jax.types.hyperparameters import MaxRounds


@arguments_of(clipped_objective, "clip_low", "clip_high", "epsilon", clip_high=0.28)
def brorl(max_rounds: MaxRounds = 10, **clip: Any) -> Recipe:
    """Clip-higher on the token mean of groups of mixed outcomes; give the run large groups."""
    return Recipe(clipped_objective(**clip), experience(stages=[refill(uniform, max_rounds)]))


METHOD = Method(
    brorl, changes="sampling, selection, surrogate, aggregation", evidence="reconstruction"
)
