"""Methods of a user's own, named on command lines of tests."""

from rlvr_jax.experience import experience, rate_pairs
from rlvr_jax.methods import recipe
from rlvr_jax.types import Recipe


def plainly(prompt, first, second):
    """Two answers behind a prompt, in words that the smallest policy knows."""
    return f"{prompt} {first} = {second} =".strip()


def rate_plainly(tolerance: float = 0.2) -> Recipe:
    """The method with a question for a policy that knows no English."""
    own = recipe("v1_pairwise", tolerance=tolerance)
    stages = [rate_pairs(2, tolerance, plainly, "plainly")]
    return Recipe(own.objective, experience(stages=stages))
