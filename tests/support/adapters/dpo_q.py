"""The vectors of DPO as Q-learning."""

import golden_vectors as golden
from adapters.common import pairs

from rlvr_jax.methods import recipe
from rlvr_jax.objectives.statistics.implicit_rewards import token_log_ratio_reward
from rlvr_jax.objectives.statistics.masked import masked_sum

LEFT_OUT = {
    name: "values of the token MDP, which the loss does not read"
    for name in ("advantage", "q", "v", "shaped_reward", "returns")
}


def outputs(case, hyper):
    batch, stats, beta = golden.rollouts(case), golden.stats(case), hyper["beta"]
    done = golden.evaluate(recipe("dpo_q", scale=beta), case)
    token = token_log_ratio_reward(stats.logp, batch.reference_logp, batch.mask, beta)
    chosen, rejected = pairs(batch)
    return {
        "token_reward": token,
        "sequence_reward": masked_sum(token, batch.mask, axis=1),
        "chosen": chosen,
        "rejected": rejected,
        "loss": done.loss,
        "dlogits": done.dlogits,
    }
