"""Expert iteration's vectors: which answers are kept, and the cross entropy over them."""

import golden_vectors as golden
import jax
import jax.numpy as jnp
import numpy as np

from rlvr_jax.analysis import best_of_k, majority_answer, pass_at_k
from rlvr_jax.experience.stages.donors.imitate_correct import first_of_correct, to_imitate
from rlvr_jax.methods import recipe
from rlvr_jax.types import Recipe

RIGHT = 0  # the id of the right answer


def outputs(case, hyper):
    batch = golden.experience_batch(golden.rollouts(case))
    rollouts, groups = batch.rollouts, batch.groups
    keep = first_of_correct(batch)
    kept, every = (imitated(batch, case, rows) for rows in (keep, np.ones(len(batch), bool)))
    last = rollouts.records["critic_values"][:, 0]
    return {
        **kept.outputs(),
        **every.outputs("_rc"),
        "keep": keep,
        "pass_at_k": [
            [float(pass_at_k(len(rows), rollouts.outcome[rows].sum(), k)) for k in hyper["ks"]]
            for rows in groups
        ],
        "maj_correct": [
            majority_answer(rollouts.records["answer"][rows].tolist()) == RIGHT for rows in groups
        ],
        "rerank_correct": [
            best_of_k(rollouts.outcome[rows], last[rows], len(rows)) for rows in groups
        ],
        "rc_label": rollouts.reward,
    }


def imitated(batch, case, rows):
    """The objective where these rows are imitated."""
    supervised = jax.tree.map(jnp.asarray, to_imitate(batch, rows).rollouts)
    return golden.evaluate(Recipe(recipe("expert_iteration").objective), case, batch=supervised)
