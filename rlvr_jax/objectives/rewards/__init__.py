"""Rewards: what a rollout earns, as pure functions of arrays; a row's, a group's or a batch's.

    what one is      a plain `Reward`, or a `Shaping` with a state, a step and curves (parts)
    made of others   `total`, `gated`, `bounded`, `over_steps`, `column` (composition, schedules)
    by length        `length_cosine`, `short_of_group`, `length_excess`, `steady_reasoning`
    without labels   `agreement` (consensus), `Certainty` (certainty)
    controls         `random_reward`, `inverted_outcome`

A reward is computed of numpy or jax arrays, in the dtype of the outcomes. The stage `shape` gives
it to rollouts. Everything in the `__all__` of the modules below can be imported from here.
"""

from rlvr_jax.objectives.rewards.certainty import *
from rlvr_jax.objectives.rewards.composition import *
from rlvr_jax.objectives.rewards.consensus import *
from rlvr_jax.objectives.rewards.controls import *
from rlvr_jax.objectives.rewards.lengths import *
from rlvr_jax.objectives.rewards.parts import *
from rlvr_jax.objectives.rewards.schedules import *
