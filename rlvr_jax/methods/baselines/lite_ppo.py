"""Lite PPO: center on the group, scale by the whole batch, average over tokens; nothing else.

"Part I: Tricks or Traps? A Deep Dive into RL for LLM Reasoning", https://github.com/alibaba/ROLL

    A_i  = (R_i - mean of the group) / (std of the batch + 1e-6), std with n - 1
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) / Σ n_i

The batch's deviation is robust where a group's is tiny, on prompts that are nearly solved. It is
that of the raw rewards, as in ROLL's `reward_norm` and in TRL. An older form of ROLL uses that of
the centered rewards, which is smaller. Clip and ε are ROLL's. ROLL's page also lists whitening, a
dual clip and a KL among its PPO settings, which contradicts "only two tricks"; we follow the text.
TRL adds 1e-4 to the deviation.

Left out: the sampler of its page: temperature 0.99, top-p 0.99, top-k 100
Reports: Qwen3-4B and 8B base on six maths benchmarks: steadily above GRPO and DAPO, which collapse
or stall there (abstract)
Traps: the deviation is that of all sampled rewards, not of a minibatch or a device; an older ROLL
uses that of centered rewards, whose advantages are larger; TRL adds 1e-4
"""

from rlvr_jax.objectives import batch_std, clipped_objective, group_mean, relative_to
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Epsilon


def lite_ppo(clip_low: ClipLow = 0.2, clip_high: ClipHigh = 0.2, epsilon: Epsilon = 1e-6) -> Recipe:
    """Rewards centered on their group and scaled by the batch, with a clip on the token mean."""
    advantage = relative_to(group_mean, scale=batch_std, epsilon=epsilon)
    return Recipe(clipped_objective(clip_low, clip_high, advantage=advantage))


METHOD = Method(lite_ppo, changes="advantage, aggregation")
