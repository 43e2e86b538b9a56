"""Rewards of responses, computed on the host from the grades of a batch.

A reward is a function (rollouts) -> [B], or a `Shaping`, which declares its reads, has a state
and knows the step. The stage `shape` writes the reward to the rollouts of a batch.

    outcomes       the outcome itself, signed, raised to a power, with a penalty for length
    composition    sums, products and bounds of rewards, and columns of the task's rewards
    consensus      agreement of the answers of a group
    choice         rules that choose one answer of a group, for evaluations and rewards
    rubrics        scores of several criteria
    tool_calls     rewards for calls of tools
    tournaments    ranks from pairwise comparisons
"""

from rlvr_jax.experience.rewards.choice import *
from rlvr_jax.experience.rewards.composition import *
from rlvr_jax.experience.rewards.consensus import *
from rlvr_jax.experience.rewards.outcomes import *
from rlvr_jax.experience.rewards.parts import *
from rlvr_jax.experience.rewards.rubrics import *
from rlvr_jax.experience.rewards.tool_calls import *
from rlvr_jax.experience.rewards.tournaments import *
from rlvr_jax.public import public_names

__all__ = public_names(globals())
