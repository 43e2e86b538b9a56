"""RLOO: REINFORCE on whole responses, with the other responses to the prompt as baseline.

Ahmadian et al. 2024, "Back to Basics", https://arxiv.org/abs/2402.14740

    A_i  = R_i - mean of the other rewards of the prompt
    loss = -mean_i A_i Σ_t logp_it

A is N / (N - 1) times that of `group_centered`. The baseline does not contain the rollout's own
reward, so the gradient is unbiased. This is the paper's loss, for on-policy updates. TRL clips the
ratio of the whole response instead. The paper subtracts a KL from the reward before the baseline;
this recipe has no KL. A group of one has advantage 0, as in TRL; in verl, its reward.

Reports: on preferences (TL;DR, HH), a higher win rate than PPO and DPO (no numbers).
Traps: The ratio of a long response is a product and leaves a trust region almost immediately. Up to
a factor, the advantage is that of Dr. GRPO.
"""

from rlvr_jax.objectives import Transform, objective, part, reinforce, rollout_mean_token_sum
from rlvr_jax.objectives.advantages.group_relative import advantage_of_rewards
from rlvr_jax.objectives.statistics.groups import group_others_mean
from rlvr_jax.types import LOSS_ON_BRACKETS, Method, Recipe


@part
def leave_one_out() -> Transform:
    """A_i = R_i - mean over the other rollouts of the prompt."""
    return advantage_of_rewards(lambda reward, group: reward - group_others_mean(reward, group))


def rloo() -> Recipe:
    """Multiplies the log-prob of the response by its leave-one-out advantage."""
    advantage = leave_one_out()
    return Recipe(
        objective(advantage=advantage, surrogate=reinforce(), aggregation=rollout_mean_token_sum())
    )


METHOD = Method(
    rloo,
    "Back to Basics: Revisiting REINFORCE Style Optimization",
    "https://arxiv.org/abs/2402.14740",
    changes="advantage, surrogate, aggregation",
    shown=LOSS_ON_BRACKETS,
)
