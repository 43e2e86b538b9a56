"""ARPO's vectors: every turn is a round; rows two by two are siblings that share their first tokens
up to the shorter first turn."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np
from adapters.common import all_logp, both

from rlvr_jax.experience.draws.trees.branching import branch_probability, first_entropy
from rlvr_jax.methods import recipe
from rlvr_jax.methods.agents.arpo import token_owner
from rlvr_jax.objectives import parent_rows


def siblings(case):
    """The record in which every second row of a group has branched off the one before it."""
    batch, size = golden.rollouts(case), int(golden.inputs(case)["group_size"])
    rows = np.arange(len(batch.group))
    second = rows % size % 2 == 1
    first_turn = np.asarray(batch.mask & (batch.records["turn"] == 0)).sum(axis=1)
    shared = np.minimum(first_turn, np.roll(first_turn, 1))
    parent = np.where(second & (shared > 0), rows - 1, -1)
    return batch.replace(
        parent=jnp.asarray(parent, jnp.int32),
        branch_position=jnp.asarray(np.where(parent >= 0, shared, -1), jnp.int32),
    )


def round_entropies(case, hyper):
    """E of each token's round, [B, T], and of each round by row; 0 where there is none."""
    batch, logp = golden.rollouts(case), all_logp(case, "old_logits")
    topk = -np.sort(-logp, axis=-1)[..., : hyper["top_k"]]
    turn, found, each = np.asarray(batch.records["turn"]), np.zeros(batch.mask.shape), []
    for number in range(turn.max() + 1):
        own = np.asarray(batch.mask) & (turn == number)
        value = first_entropy(topk, own, hyper["window"], logp.shape[-1])
        found = np.where(own, value[:, None], found)
        each.append(np.where(own.any(axis=1), value, np.nan))
    return found, np.stack(each, axis=1)


def outputs(case, hyper):
    batch = siblings(case)
    mask, width = np.asarray(batch.mask), batch.mask.shape[1]
    entropy, each = round_entropies(case, hyper)
    delta = np.where(mask, entropy - np.nan_to_num(each[:, :1]), 0)
    parent = parent_rows(batch.parent, batch.rollout_id)
    owner = np.asarray(token_owner(parent, batch.branch_position, width))
    own = owner == np.arange(len(mask))[:, None]
    inherited = ~own
    # A row's token is shared if another row has it.
    given_away = np.zeros_like(mask)
    for row in range(len(mask)):
        given_away[row] = np.any((owner == row) & inherited, axis=0)
    return losses(case, hyper) | {
        "round_entropy": entropy,
        "delta_entropy": delta,
        "branch_prob": np.where(mask, branch_probability(delta, hyper["weight"], hyper["base"]), 0),
        "shared_prefix": inherited | given_away,
    }


@both
def losses(case, hyper, soft):
    tree = siblings(case)
    batch = golden.rollouts(case, soft).replace(
        parent=tree.parent, branch_position=tree.branch_position
    )
    found = {}
    for suffix, hard in (("", False), ("_hard", True)):
        method = recipe(
            "arpo",
            hard=hard,
            clip_low=hyper["clip_low"],
            clip_high=hyper["clip_high"],
            dual=hyper["dual"],
            epsilon=hyper["eps"],
        )
        done = golden.evaluate(method, case, soft, batch=batch)
        found |= done.outputs(suffix)
    return found
