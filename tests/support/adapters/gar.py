"""GAR's vectors: a group is a statement; one of the rewards says which proofs altered it."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np
from adapters.common import by_group, row_advantages

from rlvr_jax.experience.stages.problems.written import pass_rates
from rlvr_jax.methods import recipe
from rlvr_jax.methods.self_play.gar import adversarial, prover_rewards, trains_prover
from rlvr_jax.types import replace


def outputs(case, hyper):
    data = golden.inputs(case)
    outcomes = by_group(data["rewards"], case)
    size, rates = outcomes.shape[1], pass_rates(outcomes)
    altered = (data["multi_rewards"][:, 1] == 0).astype(float)
    fraction = by_group(altered, case).mean(axis=1)
    fuser = np.repeat(np.asarray(adversarial(rates, fraction)), size)
    prover = prover_rewards(data["rewards"], altered, hyper["modify_penalty"])
    method = replace(recipe("gar", epsilon=hyper["eps"]), experience=None)
    batch = golden.rollouts(case)

    def advantages(reward, rows, group):
        own = batch.replace(
            reward=jnp.asarray(reward, batch.reward.dtype), group=jnp.asarray(group)
        )
        if rows is not None:
            own = replace(own, mask=own.mask & jnp.asarray(rows)[:, None])
        return own

    # All statements of a step are one group, each a row of its own.
    first = np.arange(len(fuser)) % size == 0
    apart = np.where(first, 0, 1 + np.arange(len(fuser))).astype(np.int32)
    compared = row_advantages(method, advantages(fuser, None, apart))[::size]
    own = advantages(prover, None, batch.group)
    train = np.repeat(trains_prover(rates, hyper["max_rate"]), size)
    kept = golden.evaluate(method, case, batch=advantages(prover, train, batch.group))
    return {
        "pass_rate": np.repeat(rates, size),
        "modify_rate": np.repeat(fraction, size),
        "fuser_reward": fuser,
        "fuser_advantage": np.repeat(compared, size),
        "prover_reward": prover,
        "prover_advantage": row_advantages(method, own),
        "train_prover": train,
        "advantages": kept.signals.advantage,
    }
