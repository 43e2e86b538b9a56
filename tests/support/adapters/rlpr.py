"""RLPR's vectors: rewards of the file, as the stage that makes them reads texts."""

import golden_vectors as golden
import numpy as np
from adapters.common import per_group

from rlvr_jax.methods import recipe
from rlvr_jax.methods.rewards.rlpr import NO_SPREAD
from rlvr_jax.objectives import group_std
from rlvr_jax.types import Recipe

LEFT_OUT = {
    **dict.fromkeys(
        ("token_prob", "pr_mean_prob", "base_score", "debiased", "reward"),
        "of texts, in tests/methods/test_rlpr.py",
    ),
    **dict.fromkeys(
        ("pr_seq_prob", "pr_geo_mean", "pr_mean_logp"), "means that the method does not offer"
    ),
}


def outputs(case, hyper):
    reward = golden.reference("rlpr", case)["reward"]
    batch = golden.rollouts(case).replace(reward=reward)
    spread = group_std(reward, batch.group)
    state = NO_SPREAD.after(per_group(spread, case), keep=0.99, start=1)
    own = recipe("rlpr", epsilon=hyper["eps"]).objective
    return {
        "group_std": spread,
        "ema_std": state.mean,
        "keep": np.asarray(spread) >= hyper["beta"] * state.mean,
        "advantages": golden.evaluate(Recipe(own), case, batch=batch).signals.advantage,
    }
