"""CLPO's vectors: the label of a row is the band of its own group."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np
from adapters.common import by_group, on_mask, recipe_with

from rlvr_jax.experience.stages.problems.written import mixed
from rlvr_jax.methods.curricula.clpo import HARD, MEDIUM, bands
from rlvr_jax.objectives import Context, k3_clamped, scale_of_cell
from rlvr_jax.types import replace


def outputs(case, hyper):
    outcomes = by_group(golden.inputs(case)["rewards"], case)
    size, accuracy = outcomes.shape[1], outcomes.mean(axis=1)
    band = bands(accuracy, hyper["hard"], hyper["medium"])
    batch = golden.rollouts(case)
    batch = batch.replace(cell=jnp.asarray(np.repeat(band, size), jnp.int32))
    method = recipe_with(hyper, "clpo", hard_scale=hyper["kl_hard"], other_scale=hyper["kl_other"])
    done = golden.evaluate(replace(method, experience=None), case, batch=batch)
    context = Context(golden.stats(case), batch, batch.old_logp, None)
    scale = scale_of_cell({HARD: hyper["kl_hard"]}, hyper["kl_other"])
    kl = k3_clamped(golden.stats(case).logp, batch.reference_logp, batch.old_logp)
    rows = {
        "acc": accuracy,
        "band": band,
        "simplify": band == HARD,
        "diversify": band == MEDIUM,
        "keep": mixed(outcomes),
    }
    return {
        **done.outputs(),
        **{name: np.repeat(values, size) for name, values in rows.items()},
        "kl_scale": scale(done.signals, context)[:, 0],
        "kl": on_mask(kl, batch),
    }
