"""Entropy patterns: the base is the reference policy."""

import golden_vectors as golden
import numpy as np
from adapters.common import by_group, entropy_of, logp_of

from rlvr_jax.analysis.arrays import masked_mean, perplexity
from rlvr_jax.analysis.entropy.entropy_patterns import (
    branching,
    change_by_percentile,
    entropy_by_outcome,
    entropy_quantiles,
    fork_overlap,
    forks,
    position_profile,
)


def outputs(case, hyper):
    data = golden.inputs(case)
    mask, correct = data["mask"], data["rewards"] > 0.5
    entropy, base = entropy_of(case, "logits"), entropy_of(case, "ref_logits")
    found, base_forks = forks(entropy, mask, hyper["rho"]), forks(base, mask, hyper["rho"])
    overlap, jaccard = fork_overlap(base_forks.mask, found.mask)
    of_right, of_wrong = entropy_by_outcome(entropy, mask, correct)
    sizes = np.where(mask, branching(data["logits"], hyper["top_p"]), 0)
    return {
        "entropy": entropy,
        "threshold_base": base_forks.threshold,
        "threshold_now": found.threshold,
        "fork_mask": found.mask,
        "overlap": overlap,
        "jaccard": jaccard,
        "entropy_change_by_percentile": change_by_percentile(base, entropy, mask, hyper["bins"]),
        "quantiles": entropy_quantiles(entropy, mask),
        "branching": sizes,
        "mean_branching": masked_mean(sizes, mask),
        "ppl": perplexity(logp_of(case, "logits"), mask),
        "entropy_correct": of_right,
        "entropy_wrong": of_wrong,
        "position_profile": position_profile(entropy, mask, hyper["parts"]),
        "unsolvable": by_group(~correct, case).all(axis=1),
        "mean_entropy": masked_mean(entropy, mask),
    }
