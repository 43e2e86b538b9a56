"""RGR-GRPO's vectors: the rows of another policy are the revised ones."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np
from adapters.common import on_mask

from rlvr_jax.experience import first_of_largest, weighted_fraction
from rlvr_jax.methods import recipe
from rlvr_jax.objectives import shaped_probability

LEFT_OUT = dict.fromkeys(
    ("failed", "need_refinement"), "by texts, in tests/methods/test_rgr_grpo.py"
)


def outputs(case, hyper):
    settings = {
        "weights": hyper["weights"],
        "factual": hyper["factual"],
        "least": hyper["pass_at"],
        "gamma": hyper["gamma"],
        "epsilon": hyper["std_eps"],
    }
    done = golden.evaluate(recipe("rgr_grpo", **settings), case)
    luffy = golden.evaluate(recipe("rgr_grpo", shape_of=shaped_probability, **settings), case)
    batch, least = done.batch, hyper["pass_at"]
    scores = batch.records["component_rewards"]
    met = (scores >= least).astype(scores.dtype)
    best = first_of_largest(
        jnp.where(batch.records["off_policy"], -1.0, batch.reward),
        batch.group,
        batch.rollout_id,
    )
    rows = np.flatnonzero(np.asarray(best))
    return {
        **done.outputs(),
        **luffy.outputs("_luffy_shape"),
        "rubric": weighted_fraction(met, hyper["weights"]),
        "reward": batch.reward,
        "best_row": rows,
        "token_loss": on_mask(done.token_loss, batch),
    }
