"""DeepSearch's vectors: the steps of a row are its nodes, rows of a group share the first ones."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np
from adapters.common import recipe_with

from rlvr_jax.experience.draws.trees.nodes import path_to, roots, with_nodes
from rlvr_jax.methods.trees.deepsearch import back_up_bounded, overlong_term, token_rewards
from rlvr_jax.objectives import find_steps


def outputs(case, hyper):
    batch, size = golden.rollouts(case), int(golden.inputs(case)["group_size"])
    mask, width = np.asarray(batch.mask), batch.mask.shape[1]
    steps = find_steps(batch.records["step"], batch.mask)
    depth = np.where(mask, np.asarray(steps.index) + 1, 0)
    nodes, known = roots(len(mask) // size), {}
    leaves, node_of = [], np.zeros(mask.shape, int)
    for row in range(len(mask)):
        place, tree = row % size, row // size
        levels, node = int(depth[row].max()), tree
        for level in range(1, levels + 1):
            shared = place // 2 ** max(0, 3 - level) if level < levels else ("leaf", place)
            if (tree, level, shared) not in known:
                nodes = with_nodes(nodes, np.array([node]))
                known[tree, level, shared] = len(nodes) - 1
            node = known[tree, level, shared]
            node_of[row][depth[row] == level] = node
        leaves.append(node)
    for row, leaf in enumerate(leaves):
        reward = 1.0 if batch.outcome[row] > 0.5 else -1.0
        nodes = back_up_bounded(nodes, path_to(nodes, leaf), reward, hyper["gamma_min"])
    value = nodes.value[node_of]
    overlong = overlong_term(batch.length, width, hyper["overlong_buffer"])
    last = node_of == np.array(leaves)[:, None]
    reward = np.where(mask, token_rewards(value, last, hyper["overlong_factor"] * overlong), 0)
    batch = batch.replace(process_reward=jnp.asarray(reward))

    def evaluated(epsilon):
        method = recipe_with(hyper, "deepsearch", epsilon=epsilon)
        return golden.evaluate(method, case, batch=batch)

    done = evaluated(None)
    return {
        **done.outputs(),
        "depth": depth,
        "node_value": np.where(mask, value, 0),
        "node_q": np.where(mask, value / np.maximum(nodes.visits[node_of], 1), 0),
        "overlong": overlong,
        "token_reward": reward,
        "advantages_std": evaluated(hyper["eps"]).signals.advantage,
    }
