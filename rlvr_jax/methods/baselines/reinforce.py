"""REINFORCE: the plain policy gradient, with the mean reward of the batch as baseline.

Williams 1992, https://doi.org/10.1007/BF00992696, as used for language models by verl
(https://github.com/volcengine/verl).

    G_t  = Σ_{s ≥ t} γ^{s-t} r_s, the outcome as r of the last token
    A_t  = G_t - mean R of the batch
    loss = mean_i Σ_t -A_t logp_t

A sum over a response, not divided by its length, has the unbiased gradient of the mean reward. The
discount γ = 1 and the aggregation are verl's. There is no baseline in verl; the batch mean is ours.
It contains the rollout's own reward, which causes a bias of order 1/B. `rloo` has no such bias.

Traps: A second update on the batch is not corrected. The value of the loss has no meaning. A
discount below 1 almost removes the early tokens of long responses.
"""

from rlvr_jax.objectives import batch_mean, objective, reward_to_go, surrogates
from rlvr_jax.objectives.surrogates.aggregations import rollout_mean_token_sum
from rlvr_jax.types import LOSS_ON_BRACKETS, Method, Recipe
from rlvr_jax.types.hyperparameters import Discount


def reinforce(discount: Discount = 1.0) -> Recipe:
    """Multiplies log-probs by returns relative to the mean reward of the batch."""
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
    shown=LOSS_ON_BRACKETS,
)
