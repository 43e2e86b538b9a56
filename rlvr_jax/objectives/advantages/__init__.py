"""Advantages: the first part of the chain, signed credit from rewards, values or preferences.

    against the group    `group_normalized`, `group_centered`, `relative_to`, `trace_normalized`;
                         `rollout_advantage` for a custom one
    no baseline          `plain_reward`, `no_advantage`
    over time            `reward_to_go`, `generalized_advantage`, `process_to_go`
    of another advantage `whitened`, `standardize_advantage`, `advantage_by_cell`

Some advantages read a critic: see `critic_of` and `value_loss`. A `Scorer` is a network that is
fitted to rollouts and takes the critic's place. `implicit_q_losses` fits values of written
dialogues. An advantage that only one paper uses is in that paper's file.
"""

from rlvr_jax.objectives.advantages.by_cell import *
from rlvr_jax.objectives.advantages.critics import *
from rlvr_jax.objectives.advantages.group_relative import *
from rlvr_jax.objectives.advantages.offline_values import *
from rlvr_jax.objectives.advantages.process_credit import *
from rlvr_jax.objectives.advantages.returns import *
from rlvr_jax.objectives.advantages.scorers import *
from rlvr_jax.objectives.advantages.whitening import *
from rlvr_jax.public import public_names

__all__ = public_names(globals())
