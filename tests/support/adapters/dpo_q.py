"""The vectors of DPO as Q-learning."""

import golden_vectors as golden
from adapters.common import pairs

from rlvr_jax.methods import recipe
from rlvr_jax.objectives import log_ratio_sum

LEFT_OUT = {"token_reward": "a term of the reward of the response, which is compared"} | {
    name: "values of the token MDP, which the loss does not read"
    for name in ("advantage", "q", "v", "shaped_reward", "returns")
}


def outputs(case, hyper):
    batch, stats, beta = golden.rollouts(case), golden.stats(case), hyper["beta"]
    done = golden.evaluate(recipe("dpo_q", scale=beta), case)
    chosen, rejected = pairs(batch)
    return {
        **done.outputs(),
        "sequence_reward": beta * log_ratio_sum(stats.logp, batch.reference_logp, batch.mask),
        "chosen": chosen,
        "rejected": rejected,
    }
