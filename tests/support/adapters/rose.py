"""ROSE's vectors: a stand-in for embeddings, and a tree of the rows of each group."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np
from adapters.common import all_logp, both, on_mask, recipe_with

from rlvr_jax.experience.draws.trees.branching import top_entropy
from rlvr_jax.methods.trees.rose import (
    branch_points,
    diversity,
    similarity,
    stretch_credit,
)
from rlvr_jax.objectives import parent_rows


def branched(case, soft=False):
    """The record with its tree: place i of a group has branched off place (i - 1) // 2, but for the
    first and the last one."""
    batch, size = golden.rollouts(case, soft), int(golden.inputs(case)["group_size"])
    rows = np.arange(len(batch.group))
    place, length = rows % size, np.asarray(batch.length)
    root = (place == 0) | (place == size - 1)
    parent = np.where(root, -1, rows - place + (place - 1) // 2)
    position = np.where(root, -1, np.maximum(np.minimum(length[parent], length) - 1, 0) // 2)
    return batch.replace(
        parent=jnp.asarray(parent, jnp.int32),
        branch_position=jnp.asarray(position, jnp.int32),
    )


def outputs(case, hyper):
    batch, logp = branched(case), all_logp(case, "old_logits")
    ids = np.argsort(-logp, axis=-1)[..., : hyper["top_k"]]
    topk = np.take_along_axis(logp, ids, axis=-1)
    numbers = np.arange(logp.shape[-1])
    entropy = top_entropy(topk)
    alike, largest = similarity(topk, ids, np.cos(np.outer(numbers + 1, np.arange(8) + 1)))
    parent = np.asarray(batch.parent)
    size = int(golden.inputs(case)["group_size"])
    points = branch_points(
        parent_rows(batch.parent, batch.rollout_id), batch.branch_position, batch.mask.shape[1]
    )
    return losses(case, hyper) | {
        "topk_entropy": on_mask(entropy, batch),
        "similarity": on_mask(alike, batch),
        "branch_metric": on_mask(diversity(entropy, alike, largest), batch),
        "parent": np.where(parent >= 0, parent % size, -1),
        "branch_pos": np.maximum(batch.branch_position, 0),
        "is_branch_point": on_mask(points, batch),
    }


@both
def losses(case, hyper, soft):
    batch = branched(case, soft)
    parent = parent_rows(batch.parent, batch.rollout_id)
    points = branch_points(parent, batch.branch_position, batch.mask.shape[1])
    _, begun = stretch_credit(batch, points)

    def evaluated(penalty):
        method = recipe_with(
            hyper,
            "rose",
            length_penalty=penalty,
            kl_coefficient=0.0,
            max_length=batch.mask.shape[1],
        )
        return golden.evaluate(method, case, soft, batch=batch)

    done = evaluated(0.0)
    return {
        **done.outputs(),
        "prefix_value": on_mask(begun, batch),
        "advantages_length": evaluated(hyper["length_penalty"]).signals.advantage,
    }
