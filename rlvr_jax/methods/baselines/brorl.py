"""BroRL: hundreds of rollouts per prompt, for models that no longer improve with more steps.

Hu et al. 2025, "BroRL: Scaling Reinforcement Learning via Broadened Exploration",
https://arxiv.org/abs/2510.01180

    A_i  = (R_i - mean) / (std + 1e-6) over N = 512 rollouts, std with n - 1
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ n_i, over groups of mixed outcomes

N is a setting of the run. The preset of the method samples 512 responses to each of four prompts,
in four sampling batches. Sampled tokens always add probability to correct tokens, and unsampled
ones may remove it. A large N leaves fewer tokens unsampled
(`rlvr_jax.analysis.updates.mass_balance`). It also leaves fewer groups that are all correct or all
incorrect. The paper compares with N = 16: `broadened_fraction` counts the groups that are mixed
although their first 16 outcomes are equal. Clip and rounds are DAPO's, as the paper's were not
read.

Left out: the KL to a renewed reference of ProRL, the run that the paper continues.
Reports: A 1.5B model that stopped improving after 3000 steps of ProRL improves again at N = 512.
More of the prompts are useful (no numbers).
Traps: With `--samples-per-prompt 16` or less it is only DAPO's filter and clip. The theorem has a
factor 1/N, so it determines the sign of a step and not its size.
"""

from typing import Any

from rlvr_jax.experience import Stage, experience, refill, uniform
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.types import Method, Recipe, Shown, arguments_of, part
from rlvr_jax.types.hyperparameters import Count, MaxRounds


@part
def count_broadened(usual: Count = 16) -> Stage:
    """Counts groups of mixed outcomes whose first `usual` outcomes are all equal.

    A group of `usual` responses would not train. The batch does not change.

    Metrics: broadened_fraction (fraction of the groups of the batch).
    """

    def apply(batch, actor, state, turn):
        outcomes = batch.outcomes()
        broadened = uniform(outcomes[:, :usual]) & ~uniform(outcomes)
        return batch, state, {"broadened_fraction": float(broadened.mean())}

    return apply


@arguments_of(clipped_objective, "clip_low", "clip_high", "epsilon", clip_high=0.28)
def brorl(max_rounds: MaxRounds = 10, **clip: Any) -> Recipe:
    """Applies clip-higher with the token mean to large groups of mixed outcomes."""
    stages = [refill(uniform, max_rounds), count_broadened()]
    return Recipe(clipped_objective(**clip), experience(stages=stages))


METHOD = Method(
    brorl,
    changes="sampling, selection, surrogate, aggregation",
    evidence="reconstruction",
    shown=Shown("brackets", "experience/broadened_fraction", without="dapo", within=2),
    # The group size is the method. Four prompts make 2,048 rows, sampled a quarter at a time.
    presets={"": {"prompts_per_step": 4, "samples_per_prompt": 512, "sampling_batches": 4}},
)
