"""EPO's vectors; the old policy's entropies are the only update that is remembered."""

import golden_vectors as golden
import jax.numpy as jnp
from adapters.common import on_mask, only

from rlvr_jax.methods import recipe
from rlvr_jax.methods.agents.epo import (
    BandState,
    band_penalty,
    banded_entropy_bonus,
    phase_weight,
    step_entropy,
)
from rlvr_jax.objectives.regularizers.token_penalties import statistic_penalty


def outputs(case, hyper):
    batch, stats = golden.rollouts(case), golden.stats(case)
    steps, epochs = hyper["max_steps"], hyper["max_epochs"]
    history, there = step_entropy(batch.entropy, batch.mask, batch.records["env_step"], steps)
    past = BandState(history, there.astype(jnp.int32), jnp.asarray(hyper["epoch"], jnp.int32))
    state = {"banded_entropy_bonus": past}
    band = {"low": hyper["low"], "high": hyper["high"], "size": hyper["penalty"]}
    made = {
        "smooth_coefficient": hyper["smooth"],
        "band_low": hyper["low"],
        "band_high": hyper["high"],
        "penalty": hyper["penalty"],
        "max_steps": steps,
        "max_epochs": epochs,
        "clip_low": hyper["clip"],
        "clip_high": hyper["clip"],
        "dual_clip": hyper["dual"],
        "epsilon": hyper["eps"],
    }
    plain = golden.evaluate(recipe("epo", entropy_coefficient=0.0, **made), case, state=state)
    found = {
        "advantages": plain.signals.advantage,
        "entropy": on_mask(stats.entropy, batch),
        "env_step": batch.records["env_step"],
        "history": history,
        "phase_table": phase_weight(jnp.arange(epochs + 1), epochs),
        "token_loss": plain.token_loss,
        "pg_loss": plain.loss,
        "dlogits_entropy": golden.evaluate(only(statistic_penalty(1.0, "entropy")), case).dlogits,
    }
    for name, per_rollout in (("token", False), ("seq", True)):
        mode = {"per_rollout": per_rollout}
        penalty = band_penalty(
            stats.entropy, batch.mask, batch.records["env_step"], past, **band, **mode
        )
        # The bracket is what is subtracted from the loss.
        bonus = banded_entropy_bonus(
            -1.0, hyper["smooth"], *band.values(), max_steps=steps, max_epochs=epochs, **mode
        )
        done = golden.evaluate(
            recipe("epo", entropy_coefficient=hyper["coef"], **made, **mode), case, state=state
        )
        found |= {
            **done.outputs(f"_{name}"),
            f"penalty_{name}": on_mask(penalty, batch),
            f"regularizer_{name}": golden.evaluate(only(bonus), case, state=state).loss,
        }
    return found
