"""Base against RL: rewards are RL's, the base's stand-in is a component of the reward."""

import golden_vectors as golden
from adapters.common import by_group, logp_of

from rlvr_jax.analysis.arrays import perplexity
from rlvr_jax.analysis.boundary.base_vs_rl import base_vs_rl


def outputs(case, hyper):
    data = golden.inputs(case)
    rl = by_group(data["rewards"] > 0.5, case).sum(axis=1)
    base = by_group(data["multi_rewards"][:, 2] > hyper["base_above"], case).sum(axis=1)
    found = base_vs_rl(base, rl, int(data["group_size"]), hyper["bins"])
    counts = found.solvable
    return {
        "curve_rl": found.curve_rl,
        "curve_base": found.curve_base,
        "crossing_k": found.crossing_k,
        "sampling_efficiency_gap": found.efficiency_gap,
        "solvable": [counts.both, counts.second_only, counts.first_only, counts.neither],
        "subset_share": found.subset_fraction,
        "accuracy_hist_rl": found.histogram_rl,
        "accuracy_hist_base": found.histogram_base,
        "ppl_base_of_rl": perplexity(logp_of(case, "ref_logits"), data["mask"]),
        "ppl_rl_of_rl": perplexity(logp_of(case, "logits"), data["mask"]),
    }
