"""REINFORCE's vectors, with the batch mean as baseline."""

import golden_vectors as golden
from adapters.common import both

from rlvr_jax.methods import recipe
from rlvr_jax.objectives.advantages.returns import discounted_returns, token_rewards


@both
def outputs(case, hyper, soft):
    done = golden.evaluate(recipe("reinforce", discount=hyper["gamma"]), case, soft)
    batch = done.batch
    rewards = token_rewards(batch.reward, batch.mask)
    return {
        **done.outputs(),
        "returns": discounted_returns(rewards, batch.mask, hyper["gamma"]),
    }
