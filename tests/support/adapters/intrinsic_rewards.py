"""The vectors of the intrinsic rewards; every id is an answer, and 0 is the right one."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np
from adapters.common import per_rollout

from rlvr_jax.experience import Moment, answer_clusters
from rlvr_jax.experience.rewards.consensus import answer_fraction
from rlvr_jax.methods import recipe
from rlvr_jax.methods.rewards.intrinsic_rewards import (
    certainty_of_distribution,
    certainty_of_entropy,
    certainty_of_margin,
    certainty_of_probability,
    certainty_of_response,
    majority_vote,
)
from rlvr_jax.objectives import group_max

LEFT_OUT = {
    "token_certainty": "compared in its mean, `self_certainty`",
    "majority_share_next": "a prediction of the paper that the method does not make",
}
CERTAINTIES = {
    "self_certainty": certainty_of_distribution,
    "token_entropy": certainty_of_entropy,
    "trajectory_logp": certainty_of_response,
    "probability": certainty_of_probability,
    "disparity": certainty_of_margin,
}


def outputs(case, hyper):
    batch, data = golden.rollouts(case), golden.inputs(case)
    old = golden.token_stats(jnp.asarray(data["old_logits"]), batch.tokens, top_k=2)
    batch = batch.replace(old_topk_logp=old.records["topk_logp"])
    old_logp, vocabulary = batch.old_logp, data["old_logits"].shape[-1]
    found = {}
    for name, signal in CERTAINTIES.items():
        found[name] = np.asarray(signal.of(batch, old_logp, batch.mask))
        found[f"adv_{name}"] = advantages(signal, case, batch, hyper)
    # The distance from the uniform distribution, of rows with tokens.
    uniform = np.log(vocabulary) * np.asarray(batch.mask).any(axis=1)
    found["self_certainty"] = found["self_certainty"] - uniform
    clusters = answer_clusters(batch.records["answer"], batch.group)
    fraction = group_max(answer_fraction(clusters, batch.group), batch.group)
    vote, _, told = majority_vote.apply(batch, (), Moment(0, None, None))
    return {
        **found,
        "majority": vote,
        "adv_majority": advantages(majority_vote, case, batch, hyper),
        "majority_share": fraction,
        "label_accuracy": told["label_accuracy"],
        "reward_accuracy": told["reward_accuracy"],
    }


def advantages(signal, case, batch, hyper):
    method = recipe("intrinsic_rewards", signal=signal, epsilon=hyper["eps"], kl_coefficient=0.0)
    return per_rollout(golden.evaluate(method, case, batch=batch).signals.advantage, batch)
