"""A recipe that tests name on command lines."""

from rlvr_jax import methods
from rlvr_jax.types import Recipe, replace


def distilled() -> Recipe:
    """The divergence from the policy that the run began with, one update a step."""
    return replace(methods.recipe("mdpo", updates_per_step=1), teacher="start")
