"""Support: rewards are RL's, the base's stand-in is a component of the reward."""

import golden_vectors as golden
from adapters.common import by_group, entropy_of, logp_of

from rlvr_jax.analysis.arrays import masked_mean, perplexity, row_sum
from rlvr_jax.analysis.boundary.support_shrinkage import (
    answer_entropy,
    expansion_rate,
    support,
    support_kinds,
    unseen_mass,
)


def outputs(case, hyper):
    data = golden.inputs(case)
    mask, correct = data["mask"], data["rewards"] > 0.5
    rl = by_group(correct, case).mean(axis=1)
    base = by_group(data["multi_rewards"][:, 2] > hyper["base_above"], case).mean(axis=1)
    logp = {"base": logp_of(case, "ref_logits"), "rl": logp_of(case, "logits")}
    total = {name: row_sum(values, mask) for name, values in logp.items()}
    inside = {name: values[correct] > hyper["log_eps"] for name, values in total.items()}
    counts = support(base > 0, rl > 0)
    completions = support(inside["base"], inside["rl"])
    return {
        **measures("problem", counts),
        **measures("completion", completions),
        "problem_kind": support_kinds(base > 0, rl > 0),
        "counts": counts,
        "counts_rate": support(base > hyper["rate"], rl > hyper["rate"]),
        "completion_counts": completions,
        "seq_logp_base": total["base"],
        "seq_logp_rl": total["rl"],
        "ppl_base": perplexity(logp["base"], mask),
        "ppl_rl": perplexity(logp["rl"], mask),
        "epsilon": unseen_mass(hyper["k"], hyper["zeta"]),
        "expansion_rate": expansion_rate(base > 0, rl > 0),
        "answer_entropy": answer_entropy(by_group(data["answers"], case)),
        "token_entropy_base": masked_mean(entropy_of(case, "ref_logits"), mask),
        "token_entropy_rl": masked_mean(entropy_of(case, "logits"), mask),
    }


def measures(prefix, counts):
    return {
        f"{prefix}_srr": counts.retention,
        f"{prefix}_ndr": counts.discovery,
        f"{prefix}_sds": counts.score,
        f"{prefix}_nscr": counts.net_change,
    }
