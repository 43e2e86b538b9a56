"""The vectors of implicit process rewards."""

import golden_vectors as golden
from adapters.common import pairs

from rlvr_jax.methods import recipe
from rlvr_jax.methods.credit.implicit_prm import (
    contrastive_pairs,
    cross_entropy,
    cumulative_reward,
    prospect,
    step_scores,
    worst_step,
    zero_point,
)
from rlvr_jax.objectives.regularizers.preferences import log_ratio_sum, logistic_pairs
from rlvr_jax.objectives.statistics.groups import has_tokens
from rlvr_jax.objectives.statistics.implicit_rewards import token_log_ratio_reward
from rlvr_jax.objectives.statistics.masked import masked_sum
from rlvr_jax.objectives.statistics.steps import find_steps

LEFT_OUT = {}
LOSSES = {
    "ce": cross_entropy,
    "dpo": logistic_pairs,
    "nca": contrastive_pairs,
    "kto": prospect,
}


def outputs(case, hyper):
    batch, logp = golden.rollouts(case), golden.stats(case).logp
    token = token_log_ratio_reward(logp, batch.reference_logp, batch.mask, hyper["beta"])
    cumulative = cumulative_reward(token, batch.mask)
    steps = find_steps(batch.step, batch.mask)
    step_reward, step_q = step_scores(cumulative, steps)
    chosen, rejected = pairs(batch)
    found = {
        "token_reward": token,
        "q": cumulative,
        "step_reward": step_reward,
        "step_q": step_q,
        "reward": masked_sum(token, batch.mask, axis=1),
        "score_min_single": worst_step(step_reward, steps),
        "score_min_accumulative": worst_step(step_q, steps),
        "chosen": chosen,
        "rejected": rejected,
        "kto_kl": zero_point(
            log_ratio_sum(logp, batch.reference_logp, batch.mask), has_tokens(batch.mask)
        ),
    }
    for name, loss in LOSSES.items():
        done = golden.evaluate(recipe("implicit_prm", scale=hyper["beta"], loss=loss), case)
        found |= {f"loss_{name}": done.loss, f"dlogits_{name}": done.dlogits}
    return found
