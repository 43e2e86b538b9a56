"""RetroAgent's vectors; rows stand for lessons of a memory."""

import golden_vectors as golden
import jax
import jax.numpy as jnp
import numpy as np
from adapters.common import per_group

from rlvr_jax.methods import recipe
from rlvr_jax.methods.agents.retroagent import beyond_best, lesson_scores, potential, progress
from rlvr_jax.objectives.rewards.parts import Moment
from rlvr_jax.types import Recipe, replace

LEFT_OUT = {}


def outputs(case, hyper):
    batch, size = golden.rollouts(case), int(golden.inputs(case)["group_size"])
    soft = golden.rollouts(case, soft=True).outcome
    batch = replace(batch, component_rewards=soft[:, None])
    groups = len(batch.group) // size
    before = np.full(groups, hyper["phi0"])
    moment = Moment(0, jax.random.key(0), np.asarray(batch.group))
    own = beyond_best(0, hyper["coef"])
    total, after, _ = own.apply(batch, before, moment)
    objective = recipe("retroagent", kl_coefficient=0.0, epsilon=hyper["eps"]).objective
    done = golden.evaluate(Recipe(objective), case, batch=replace(batch, reward=total))
    phi = potential(batch.outcome, soft)
    lessons = batch.embedding
    first = jnp.repeat(lessons[::size], size, axis=0)
    rows = np.arange(len(batch.group))
    cosine, shown, score = lesson_scores(
        first + 0.5 * lessons,
        lessons,
        soft,
        jnp.asarray(1 + rows % 5, jnp.int32),
        hyper["alpha"],
        hyper["kappa"],
        hyper["relevance"],
    )
    return {
        "potential": phi,
        "intrinsic": progress(phi, jnp.asarray(before)[batch.group]),
        "total_reward": total,
        "advantages": done.signals.advantage,
        "new_baseline": per_group(after[np.asarray(batch.group)], case),
        "relevance": cosine,
        "retrievable": shown,
        "ucb_score": score,
    }
