"""OPO: the reward baseline of least variance, for exactly on-policy updates.

"On-Policy RL with Optimal Reward Baseline", https://github.com/volcengine/verl (docs/algo/opo.md)

    b    = Σ_j n_j R_j / Σ_j n_j over the group, n_j the response tokens
    A_i  = R_i - b
    loss = Σ -A_i logp_it / Σ n_i

The baseline of least variance weighs rewards by the squared norm of the score. This norm is assumed
to grow like the length. The advantages of a group sum to 0 over its tokens. The method has no
constants: no clip (one update per batch), no KL, no entropy bonus. verl's default aggregation is
the token mean. A group of one has advantage 0; in verl, its reward.

Reports: R1-Distill-Qwen-7B on maths: better pass@k, a smaller policy shift and more entropy than
GRPO (no numbers).
Traps: Several updates on a batch break its premise, because there is no clip. For responses of
equal length, the advantage is that of Dr. GRPO.
"""

from rlvr_jax.objectives import Transform, group_deviation, masked_count, objective, part, reinforce
from rlvr_jax.objectives.advantages.group_relative import group_of_one_remark, rollout_advantage
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.types import LOSS_ON_BRACKETS, Method, Recipe


@part
def length_centered() -> Transform:
    """A_i = R_i - Σ_j n_j R_j / Σ_j n_j over the rollouts of a prompt, n_j their tokens."""

    def advantage(rollouts):
        length = masked_count(rollouts.mask, axis=1).astype(rollouts.reward.dtype)
        return group_deviation(rollouts.reward, rollouts.group, weights=length)

    return rollout_advantage(advantage, remark=group_of_one_remark)


def opo() -> Recipe:
    """Multiplies log-probs by rewards relative to the length-weighted mean of the group."""
    advantage = length_centered()
    return Recipe(objective(advantage=advantage, surrogate=reinforce(), aggregation=token_mean()))


METHOD = Method(opo, changes="advantage, surrogate", shown=LOSS_ON_BRACKETS)
