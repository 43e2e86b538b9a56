"""RetroAgent's vectors."""

import golden_vectors as golden
import jax
import numpy as np
from adapters.common import per_group

from rlvr_jax.experience.rewards.parts import Moment
from rlvr_jax.methods import recipe
from rlvr_jax.methods.agents.retroagent import beyond_best, cosines, lesson_scores
from rlvr_jax.types import Recipe

SUMMED = "a term of total_reward"
LEFT_OUT = {"potential": SUMMED, "intrinsic": SUMMED}


def outputs(case, hyper):
    batch, size = golden.rollouts(case), int(golden.inputs(case)["group_size"])
    soft = golden.rollouts(case, soft=True).outcome
    batch = batch.replace(claimed=soft, cell=np.zeros(len(soft), np.int32))
    groups = len(batch.group) // size
    before = np.full(groups, hyper["phi0"])
    moment = Moment(0, jax.random.key(0), np.asarray(batch.group))
    own = beyond_best(hyper["coef"])
    total, after, _ = own.apply(batch, before, moment)
    objective = recipe("retroagent", kl_coefficient=0.0, epsilon=hyper["eps"]).objective
    done = golden.evaluate(Recipe(objective), case, batch=batch.replace(reward=total))
    embedding = np.asarray(batch.records["embedding"])
    uses = 1 + np.arange(len(soft)) % 5
    query = embedding[np.arange(len(soft)) // size * size] + 0.5 * embedding
    relevance = cosines(query, embedding).diagonal()
    shape = hyper["alpha"], hyper["kappa"]
    return {
        "relevance": relevance,
        "retrievable": (relevance >= hyper["relevance"]).astype(float),
        "ucb_score": lesson_scores(relevance, np.asarray(soft), uses, *shape),
        "total_reward": total,
        "advantages": done.signals.advantage,
        "new_baseline": per_group(after[np.asarray(batch.group)], case),
    }
