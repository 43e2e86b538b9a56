"""The vectors of implicit process rewards."""

import golden_vectors as golden
from adapters.common import pairs

from rlvr_jax.methods import recipe
from rlvr_jax.methods.credit.implicit_prm import (
    contrastive_pairs,
    cross_entropy,
    prospect,
)
from rlvr_jax.objectives.regularizers.preferences import log_ratio_sum, logistic_pairs

SCORES = "scores of steps for the choice among responses; the recipe fits the reward model"
LEFT_OUT = {
    "token_reward": "a term of the reward of the response, which is compared",
    "q": SCORES,
    "step_reward": SCORES,
    "step_q": SCORES,
    "score_min_single": SCORES,
    "score_min_accumulative": SCORES,
    "kto_kl": "an intermediate of the loss, which is compared",
}
LOSSES = {
    "ce": cross_entropy,
    "dpo": logistic_pairs,
    "nca": contrastive_pairs,
    "kto": prospect,
}


def outputs(case, hyper):
    batch, logp = golden.rollouts(case), golden.stats(case).logp
    reward = hyper["beta"] * log_ratio_sum(logp, batch.reference_logp, batch.mask)
    chosen, rejected = pairs(batch)
    found = {
        "reward": reward,
        "chosen": chosen,
        "rejected": rejected,
    }
    for name, loss in LOSSES.items():
        done = golden.evaluate(recipe("implicit_prm", scale=hyper["beta"], loss=loss), case)
        found |= done.outputs(f"_{name}")
    return found
