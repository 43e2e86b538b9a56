"""CLPO's vectors: the label of a row is the band of its own group."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np
from adapters.common import by_group, on_mask

from rlvr_jax.experience.stages.problems.written import mixed
from rlvr_jax.methods import recipe
from rlvr_jax.methods.curricula.clpo import HARD, MEDIUM, bands
from rlvr_jax.objectives import k3_clamped, scale_of_cell
from rlvr_jax.objectives.algebra.parts import Context
from rlvr_jax.types import replace

LEFT_OUT = {}


def outputs(case, hyper):
    outcomes = by_group(golden.inputs(case)["rewards"], case)
    size, accuracy = outcomes.shape[1], outcomes.mean(axis=1)
    band = bands(accuracy, hyper["hard"], hyper["medium"])
    batch = golden.rollouts(case)
    batch = batch.replace(cell=jnp.asarray(np.repeat(band, size), jnp.int32))
    method = recipe(
        "clpo",
        hard=hyper["hard"],
        medium=hyper["medium"],
        kl_coefficient=hyper["beta"],
        hard_scale=hyper["kl_hard"],
        other_scale=hyper["kl_other"],
        clip_low=hyper["clip"],
        clip_high=hyper["clip"],
        epsilon=hyper["eps"],
    )
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
        **{name: np.repeat(values, size) for name, values in rows.items()},
        "kl_scale": scale(done.signals, context)[:, 0],
        "advantages": done.signals.advantage,
        "kl": on_mask(kl, batch),
        "token_loss": done.token_loss,
        "loss": done.loss,
        "dlogits": done.dlogits,
    }
