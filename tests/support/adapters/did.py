"""Differential information: the policy is the current one, the loss is DPO's."""

import golden_vectors as golden
from adapters.common import by_group, logp_of, only, pairs

from rlvr_jax.analysis.arrays import row_sum
from rlvr_jax.analysis.updates.did import (
    differential_information,
    prefers,
    rejected_distribution,
    sampled_entropy,
    set_entropy,
)
from rlvr_jax.objectives.regularizers.preferences import implicit_reward_loss


def outputs(case, hyper):
    mask = golden.inputs(case)["mask"]
    logp, reference = (row_sum(logp_of(case, f"{name}logits"), mask) for name in ("", "ref_"))
    log_ratio = logp - reference
    chosen, rejected = pairs(golden.rollouts(case))
    margin = log_ratio[chosen] - log_ratio[rejected]
    group, reference_group = by_group(logp, case), by_group(reference, case)
    log_q = differential_information(group, reference_group)
    dpo = golden.evaluate(only(implicit_reward_loss(hyper["beta"])), case)
    return {
        **dpo.outputs(),
        "log_ratio": log_ratio,
        "chosen": chosen,
        "rejected": rejected,
        "margin": margin,
        "prob_preferred": prefers(margin, hyper["beta"]),
        "entropy_sampled": sampled_entropy(group, reference_group),
        "log_q": log_q.ravel(),
        "entropy_set": set_entropy(log_q),
        "log_rejected": rejected_distribution(group, reference_group, hyper["beta"]).ravel(),
    }
