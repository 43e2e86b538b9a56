"""Absolute Zero's vectors: even groups are answers to one question, odd ones proposals."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np
from adapters.common import by_group

from rlvr_jax.experience.stages.problems.written import pass_rates
from rlvr_jax.methods import recipe
from rlvr_jax.methods.self_play.absolute_zero import (
    cell_of,
    composed_proposer_reward,
    composed_solver_reward,
    learnability,
)
from rlvr_jax.types import replace


def outputs(case, hyper):
    data = golden.inputs(case)
    outcomes = by_group(data["rewards"], case)
    size = outcomes.shape[1]
    rate = np.repeat(pass_rates(outcomes), size)
    worth = learnability(rate)
    formed = data["multi_rewards"][:, 1] > 0.5
    values = hyper["wrong"], hyper["bad_format"]
    solver = composed_solver_reward(data["rewards"] > 0, formed, *values)
    proposer = composed_proposer_reward(worth, formed, *values)
    row = np.arange(len(rate))
    role = row // size % 2
    cell = cell_of(row % hyper["n_types"], role)
    reward = jnp.where(role == 1, proposer, solver)
    method = replace(recipe("absolute_zero"), experience=None)
    batch = golden.rollouts(case)

    def advantages(cell, mask=None):
        own = batch.replace(reward=reward, cell=jnp.asarray(cell, jnp.int32))
        own = own if mask is None else replace(own, mask=jnp.asarray(mask))
        return np.asarray(golden.evaluate(method, case, batch=own).signals.advantage)

    # One token of each row: every response counts once.
    mask = np.asarray(batch.mask)
    first = mask & (np.cumsum(mask, axis=1) == 1)
    each = advantages(cell, first).sum(axis=1, keepdims=True)
    return {
        "solve_rate": rate,
        "learnability": worth,
        "solver_reward": solver,
        "proposer_reward": proposer,
        "cell": cell,
        "reward": reward,
        "advantages": advantages(cell),
        "advantages_seq": np.where(mask, each, 0),
        "advantages_one_baseline": advantages(np.zeros_like(cell)),
    }
