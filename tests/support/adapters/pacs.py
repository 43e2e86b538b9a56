"""PACS's vectors."""

import golden_vectors as golden
from adapters.common import per_rollout, row_advantages

from rlvr_jax.methods import recipe
from rlvr_jax.methods.clipping.pacs import leave_one_out_score
from rlvr_jax.objectives import masked_mean, masked_sum


def outputs(case, hyper):
    batch, logp, beta = golden.rollouts(case), golden.stats(case).logp, hyper["beta"]
    done = golden.evaluate(recipe("pacs", scale=beta), case)
    plain = golden.evaluate(recipe("pacs", scale=beta, balanced=False), case)
    reward = beta * masked_sum(logp - batch.old_logp, batch.mask, axis=1)
    return {
        **done.outputs(),
        "reward": reward,
        "psi": leave_one_out_score(reward, batch.group),
        "psi_z": row_advantages(recipe("grpo"), batch.replace(reward=reward)),
        "weights": per_rollout(done.signals.weight, batch, empty=1),
        "bce": per_rollout(plain.token_loss, batch),
        "loss_unweighted": plain.loss,
        "coefficient": per_rollout(done.signals.weight * done.signals.advantage, batch),
        "reward_mean": beta * masked_mean(logp, batch.mask, axis=1),
    }
