"""CaRR's vectors: a graded reward in fifths stands for the rubric."""

import golden_vectors as golden
import jax.numpy as jnp

from rlvr_jax.methods import recipe
from rlvr_jax.methods.rewards.carr_cgrpo import relative_to_best
from rlvr_jax.objectives import group_max
from rlvr_jax.types import replace

LEFT_OUT = {}


def outputs(case, hyper):
    batch = golden.rollouts(case)
    fifths = hyper["n_rubrics"]
    rubric = jnp.round(golden.rollouts(case, soft=True).outcome * fifths) / fifths
    batch = replace(batch, component_rewards=rubric[:, None])
    normalised = relative_to_best(rubric, group_max(rubric, batch.group))
    alpha = hyper["alpha"]
    settings = {"share": alpha, "epsilon": hyper["eps"]}
    paper = golden.evaluate(recipe("carr_cgrpo", **settings), case, batch=batch)
    code = golden.evaluate(recipe("carr_cgrpo", relative=False, **settings), case, batch=batch)
    return {
        "rubric": rubric,
        "rubric_normalised": normalised,
        "reward": paper.batch.reward,
        "reward_code": code.batch.reward,
        "reward_all": (1 - alpha) * batch.outcome + alpha * normalised,
        "advantages": paper.signals.advantage,
        "advantages_code": code.signals.advantage,
    }
