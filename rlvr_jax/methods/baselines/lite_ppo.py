"""Lite PPO: centers rewards on the group, scales them by the batch, and averages over tokens.

"Part I: Tricks or Traps? A Deep Dive into RL for LLM Reasoning", https://github.com/alibaba/ROLL

    A_i  = (R_i - mean of the group) / (std of the batch + 1e-6), std with n - 1
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) / Σ n_i

On prompts that are nearly solved, a group's deviation is tiny; the batch's is robust. It is the
deviation of the raw rewards, as in ROLL's `reward_norm` and in TRL. An older form of ROLL uses
centered rewards, whose deviation is smaller. Clip and ε are ROLL's. ROLL's page also lists
whitening, a dual clip and a KL among its PPO settings. This contradicts "only two tricks" of the
paper's text, which this recipe follows.

Left out: the sampler of ROLL's page: temperature 0.99, top-p 0.99, top-k 100.
Reports: Qwen3-4B and 8B base on six maths benchmarks: steadily above GRPO and DAPO, which collapse
or stop improving (abstract).
Traps: The deviation is over all sampled rewards, not those of a minibatch. TRL adds 1e-4 to it.
"""

from rlvr_jax.objectives import batch_std, clipped_objective, group_mean, relative_to
from rlvr_jax.types import LOSS_ON_BRACKETS, Method, Recipe
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Epsilon


def lite_ppo(clip_low: ClipLow = 0.2, clip_high: ClipHigh = 0.2, epsilon: Epsilon = 1e-6) -> Recipe:
    """Centers rewards on their group and scales them by the batch; a clip with the token mean."""
    advantage = relative_to(group_mean, scale=batch_std, epsilon=epsilon)
    return Recipe(clipped_objective(clip_low, clip_high, advantage=advantage))


METHOD = Method(lite_ppo, changes="advantage, aggregation", shown=LOSS_ON_BRACKETS)
