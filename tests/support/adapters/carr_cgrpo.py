"""CaRR's vectors: a graded reward in fifths stands for the rubric."""

import golden_vectors as golden
import jax.numpy as jnp

from rlvr_jax.methods import recipe
from rlvr_jax.methods.rewards.carr_cgrpo import with_evidence

LEFT_OUT = {"reward_all": "a variant that the method does not offer"}


def outputs(case, hyper):
    batch = golden.rollouts(case)
    fifths = hyper["n_rubrics"]
    rubric = jnp.round(golden.rollouts(case, soft=True).outcome * fifths) / fifths
    batch = batch.replace(component_rewards=rubric[:, None])
    # The reward of correct rows that the evidence alone decides is E.
    normalised = with_evidence(0, fraction=1.0)(batch.replace(outcome=jnp.ones_like(rubric)))
    settings = {"fraction": hyper["alpha"], "epsilon": hyper["eps"]}
    paper = golden.evaluate(recipe("carr_cgrpo", **settings), case, batch=batch)
    code = golden.evaluate(recipe("carr_cgrpo", relative=False, **settings), case, batch=batch)
    return {
        "rubric": rubric,
        "rubric_normalised": normalised,
        "reward": paper.batch.reward,
        "reward_code": code.batch.reward,
        "advantages": paper.signals.advantage,
        "advantages_code": code.signals.advantage,
    }
