"""Methods of a user's own, named on command lines of tests."""

from rlvr_jax.experience import experience
from rlvr_jax.methods import recipe
from rlvr_jax.methods.credit.rlfr import implicit_scorer, standardized_reward
from rlvr_jax.methods.judges.v1_pairwise import rate_pairs
from rlvr_jax.objectives import ProcessReward, objective, ppo_clip, process_to_go, token_mean
from rlvr_jax.types import Recipe


def plainly(prompt, first, second):
    """Two answers behind a prompt, in words that the smallest policy knows."""
    return f"{prompt} {first} = {second} =".strip()


def rate_plainly(tolerance: float = 0.2) -> Recipe:
    """The method with a question for a policy that knows no English."""
    own = recipe("v1_pairwise", tolerance=tolerance)
    stages = [rate_pairs(2, tolerance, plainly)]
    return Recipe(own.objective, experience(stages=stages))


def implicit_process() -> Recipe:
    """Outcomes, and on the way rewards of an implicit process reward model."""
    process = ProcessReward(
        lambda rollouts, mask: rollouts.process_reward, frozenset({"process_reward"})
    )
    return Recipe(
        objective=objective(
            advantage=process_to_go(process, 1.0, standardized_reward(1e-6)),
            surrogate=ppo_clip(low=0.2, high=0.2),
            aggregation=token_mean(),
        ),
        critic=implicit_scorer(0.5),
    )
