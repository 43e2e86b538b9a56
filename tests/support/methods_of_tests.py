"""Custom methods, named on command lines of tests."""

import jax
import jax.numpy as jnp

from rlvr_jax.experience import experience
from rlvr_jax.methods import recipe
from rlvr_jax.methods.credit.rlfr import standardized_reward
from rlvr_jax.methods.judges.v1_pairwise import rate_pairs
from rlvr_jax.objectives import ProcessReward, objective, ppo_clip, process_to_go, token_mean
from rlvr_jax.objectives.advantages.scorers import Scorer
from rlvr_jax.objectives.statistics.masked import masked_sum
from rlvr_jax.types import Recipe
from rlvr_jax.types.hyperparameters import Positive
from rlvr_jax.types.parts import part


def plainly(prompt, first, second):
    """Two answers behind a prompt, in words that the smallest policy knows."""
    return f"{prompt} {first} = {second} =".strip()


def rate_plainly(tolerance: float = 0.2) -> Recipe:
    """The method with a question for a policy that knows no English."""
    own = recipe("v1_pairwise", tolerance=tolerance)
    stages = [rate_pairs(2, tolerance, plainly)]
    return Recipe(own.objective, experience(stages=stages))


@part
def implicit_scorer(scale: Positive = 0.05) -> Scorer:
    """β (log π_φ - log π_ref) of each token; φ is fitted by cross entropy of σ(sum) to outcomes.

    Source: https://github.com/PRIME-RL/ImplicitPRM.
    """

    def score(params, logp, rollouts):
        del params
        return jnp.where(rollouts.mask, scale * (logp - rollouts.reference_logp), 0)

    def fit(params, logp, rollouts):
        reward = masked_sum(score(params, logp, rollouts), rollouts.mask, axis=1)
        sign = jnp.where(rollouts.outcome > 0.5, 1.0, -1.0).astype(reward.dtype)
        there = jnp.any(rollouts.mask, axis=1)
        return jax.nn.softplus(-sign * reward), there.astype(reward.dtype)

    def init(key, width, dtype):
        del key, width, dtype
        return {}

    return Scorer(init, score, fit, "own", frozenset({"reference_logp"}))


def implicit_process() -> Recipe:
    """Outcomes, and on the way rewards of an implicit process reward model."""
    process = ProcessReward(
        lambda rollouts, mask: rollouts.records["process_reward"], frozenset({"process_reward"})
    )
    return Recipe(
        objective=objective(
            advantage=process_to_go(process, 1.0, standardized_reward(1e-6)),
            surrogate=ppo_clip(low=0.2, high=0.2),
            aggregation=token_mean(),
        ),
        critic=implicit_scorer(0.5),
    )
