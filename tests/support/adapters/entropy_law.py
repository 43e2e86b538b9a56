"""The entropy law on a series that is made up: a point per rollout."""

import golden_vectors as golden
import numpy as np
from adapters.common import all_logp, entropy_of, logp_of, row_advantages

from rlvr_jax.analysis import entropy_change, fit_entropy_law, token_covariance
from rlvr_jax.analysis.arrays import masked_mean, row_mean
from rlvr_jax.methods import recipe


def outputs(case, hyper):
    data = golden.inputs(case)
    mask, reward, first = data["mask"], data["soft_rewards"], hyper["first"]
    entropy = row_mean(entropy_of(case, "old_logits"), mask)
    law = fit_entropy_law(entropy, reward)
    early = fit_entropy_law(entropy[:first], reward[:first])
    residual = early.predict(entropy[first:]) - reward[first:]
    advantage = np.asarray(row_advantages(recipe("grpo"), golden.rollouts(case, soft=True)))
    covariance = token_covariance(logp_of(case, "old_logits"), advantage[:, None], mask)
    change = entropy_change(all_logp(case, "old_logits"), data["teacher_logits"])
    return {
        "H": entropy,
        "R": reward,
        "a": law.a,
        "b": law.b,
        "ceiling": law.ceiling,
        "pred": law.predict(entropy),
        "rmse": law.rmse,
        "a_first": early.a,
        "b_first": early.b,
        "rmse_rest": np.sqrt(np.mean(residual**2)),
        "cov": covariance,
        "cov_mean": masked_mean(covariance, mask),
        "dH_natural": np.where(mask, change, 0),
    }
