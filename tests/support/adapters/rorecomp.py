"""RoRecomp's vectors: the rows that go first, and the losses of either update."""

import golden_vectors as golden
import jax
import jax.numpy as jnp
import numpy as np

from rlvr_jax.methods import recipe
from rlvr_jax.methods.exploration.rorecomp import estimator, priority_rows
from rlvr_jax.objectives import group_normalized
from rlvr_jax.types import Recipe


def outputs(case, hyper):
    clip = hyper["clip"]
    method = recipe(
        "rorecomp",
        fraction=hyper["alpha"],
        clip_low=clip,
        clip_high=clip,
        epsilon=hyper["std_eps"],
    )
    rollouts = golden.experience_batch(golden.rollouts(case)).rollouts
    first = priority_rows(rollouts.outcome, rollouts.length, rollouts.group, hyper["alpha"])
    advantage = estimator(group_normalized(hyper["std_eps"]))(rollouts)
    priority = golden.evaluate(method, case)
    rest = rollouts.replace(
        advantage=advantage,
        mask=rollouts.mask & ~first[:, None],
        stored=np.ones(len(first), bool),
    )
    later = golden.evaluate(Recipe(method.objective), case, batch=jax.tree.map(jnp.asarray, rest))
    return {
        **priority.outputs("_priority"),
        **later.outputs("_compensation"),
        "lengths": rollouts.length,
        "priority": first,
        "advantages": advantage,
    }
