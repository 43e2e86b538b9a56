"""SSP's vectors: the first row of a group is who asks, all rows attempts at the question."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np
from adapters.common import by_group

from rlvr_jax.experience.stages.problems.written import SOLVE, WRITE, pass_rates
from rlvr_jax.methods import recipe
from rlvr_jax.methods.self_play.ssp import parabola
from rlvr_jax.types import replace


def outputs(case, hyper):
    data = golden.inputs(case)
    outcomes = by_group(data["rewards"], case)
    size, rates = outcomes.shape[1], pass_rates(outcomes)
    valid = by_group(data["multi_rewards"][:, 1], case)[:, 0] == 1
    batch = golden.rollouts(case)
    first = np.arange(len(data["rewards"])) % size == 0
    method = replace(recipe("ssp", epsilon=hyper["eps"]), experience=None)

    def asked(reward):
        cell = jnp.asarray(np.where(first, WRITE, SOLVE), jnp.int32)
        own = batch.replace(cell=cell, reward=jnp.asarray(np.repeat(reward, size)))
        found = golden.evaluate(method, case, batch=own).signals.advantage
        return np.where(first[:, None], found, 0)

    linear = np.where(valid, 1 - rates, hyper["penalty"])
    curved = np.asarray(parabola(rates))
    curved = np.where(valid, curved, hyper["penalty"])
    solving = batch.replace(cell=jnp.zeros_like(batch.group))
    return {
        "success_rate": np.repeat(rates, size),
        "valid": np.repeat(valid, size),
        "proposer_reward": np.repeat(linear, size),
        "proposer_reward_mid": np.repeat(curved, size),
        "proposer_advantages": asked(linear),
        "proposer_advantages_mid": asked(curved),
        "solver_advantages": golden.evaluate(method, case, batch=solving).signals.advantage,
    }
