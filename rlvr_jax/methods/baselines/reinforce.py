"""REINFORCE: the plain policy gradient, with the mean reward of the batch as baseline.

Williams 1992, https://doi.org/10.1007/BF00992696, as used for language models by verl
(https://github.com/volcengine/verl).

    G_t  = Σ_{s ≥ t} γ^{s-t} r_s, the outcome as r of the last token
    A_t  = G_t - mean R of the batch
    loss = mean_i Σ_t -A_t logp_t

The sum over a response without division by its length is the unbiased gradient of the mean reward.
γ = 1 and the aggregation are verl's. verl has no baseline; the batch mean is ours. It contains the
rollout's own reward, a bias of order 1/B that `rloo` does not have.

Traps: nothing corrects a second update on the batch; the value of the loss has no meaning; a
discount below 1 almost removes early tokens of long responses; verl's has no baseline
"""

from rlvr_jax.objectives import batch_mean, objective, reward_to_go, surrogates
from rlvr_jax.objectives.surrogates.aggregations import rollout_mean_token_sum
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import Discount


def reinforce(discount: Discount = 1.0) -> Recipe:
    """Returns relative to the mean reward of the batch, times log-probs."""
    advantage = reward_to_go(discount, baseline=batch_mean)
    surrogate = surrogates.reinforce()
    return Recipe(
        objective(advantage=advantage, surrogate=surrogate, aggregation=rollout_mean_token_sum())
    )


METHOD = Method(
    reinforce,
    "Simple Statistical Gradient-Following Algorithms for Connectionist Reinforcement Learning",
    "https://doi.org/10.1007/BF00992696",
    changes="advantage, surrogate, aggregation",
    baseline="batch",
)
