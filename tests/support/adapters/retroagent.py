"""RetroAgent's vectors."""

import golden_vectors as golden
import jax
import numpy as np
from adapters.common import per_group

from rlvr_jax.experience.rewards.parts import Moment
from rlvr_jax.methods import recipe
from rlvr_jax.methods.agents.retroagent import beyond_best
from rlvr_jax.types import Recipe

SUMMED = "a term of total_reward"
LESSONS = "of the memory of lessons, which the method does not have"
LEFT_OUT = {
    "potential": SUMMED,
    "intrinsic": SUMMED,
    "relevance": LESSONS,
    "retrievable": LESSONS,
    "ucb_score": LESSONS,
}


def outputs(case, hyper):
    batch, size = golden.rollouts(case), int(golden.inputs(case)["group_size"])
    soft = golden.rollouts(case, soft=True).outcome
    batch = batch.replace(component_rewards=soft[:, None])
    groups = len(batch.group) // size
    before = np.full(groups, hyper["phi0"])
    moment = Moment(0, jax.random.key(0), np.asarray(batch.group))
    own = beyond_best(0, hyper["coef"])
    total, after, _ = own.apply(batch, before, moment)
    objective = recipe("retroagent", kl_coefficient=0.0, epsilon=hyper["eps"]).objective
    done = golden.evaluate(Recipe(objective), case, batch=batch.replace(reward=total))
    return {
        "total_reward": total,
        "advantages": done.signals.advantage,
        "new_baseline": per_group(after[np.asarray(batch.group)], case),
    }
