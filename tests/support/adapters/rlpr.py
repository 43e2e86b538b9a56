"""RLPR's vectors: the rows stand for reference answers, a reward of the task for the format."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np
from adapters.common import on_mask, per_group

from rlvr_jax.methods import recipe
from rlvr_jax.methods.rewards.rlpr import (
    answer_likelihoods,
    debiased,
    likely_answer_reward,
    spread_floor,
)
from rlvr_jax.objectives import group_std
from rlvr_jax.types import Recipe, replace

LEFT_OUT = {}


def outputs(case, hyper):
    batch = golden.rollouts(case)
    found = answer_likelihoods(batch.old_logp, batch.mask)
    base = answer_likelihoods(batch.reference_logp, batch.mask)["mean_probability"]
    gain = debiased(found["mean_probability"], base)
    reward = likely_answer_reward(gain, batch.component_rewards[:, 1], hyper["format_coef"])
    spread = group_std(reward, batch.group)
    filtering = spread_floor(hyper["beta"], start=1)
    state = filtering.observe(filtering.init(), per_group(spread, case))
    own = recipe("rlpr", epsilon=hyper["eps"]).objective
    done = golden.evaluate(Recipe(own), case, batch=replace(batch, reward=reward))
    return {
        "token_prob": on_mask(jnp.exp(batch.old_logp), batch),
        "pr_mean_prob": found["mean_probability"],
        "pr_seq_prob": found["probability"],
        "pr_geo_mean": found["geometric_mean"],
        "pr_mean_logp": found["mean_logp"],
        "base_score": base,
        "debiased": gain,
        "reward": reward,
        "group_std": spread,
        "ema_std": state.mean,
        "keep": np.asarray(spread) >= filtering.floor(state),
        "advantages": done.signals.advantage,
    }
