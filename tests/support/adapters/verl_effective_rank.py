"""VERL's vectors: deviations are from the moving means that the same batch has made."""

import golden_vectors as golden
import jax.numpy as jnp
from adapters.common import recipe_with

from rlvr_jax.methods.entropy.verl_effective_rank import (
    every_token,
    exploration,
    rank_trend,
)
from rlvr_jax.objectives.advantages.returns import is_last_token

INSIDE = "a step on the way to the advantages"
LEFT_OUT = {
    "explore_weight": INSIDE,
    **{f"bonus{where}{kind}": INSIDE for where in ("", "_last") for kind in ("", "_soft")},
}


def outputs(case, hyper):
    hidden = jnp.asarray(golden.inputs(case)["hidden"])
    mask = golden.rollouts(case).mask

    def stats_of(logits):
        return golden.token_stats(logits, golden.rollouts(case).tokens).replace(hidden=hidden)

    def made(where):
        return recipe_with(
            hyper,
            "verl_effective_rank",
            window=hyper["max_len"],
            smoothing=hyper["ema"],
            divisor=hyper["kappa"],
            where=where,
        )

    state = golden.evaluate(made(every_token), case, stats_of=stats_of).state
    averages = state["credit_rank_growth"].values
    trend = rank_trend(hidden, mask, hyper["stride"], hyper["max_len"])
    found = {
        "effective_rank": trend.rank,
        "er_velocity": trend.velocity,
        "er_acceleration": trend.acceleration,
        "ema": averages,
        "aux": exploration(trend, averages, hyper["gain"]),
    }
    for suffix, where in (("", every_token), ("_last", is_last_token)):
        for soft in (False, True):
            done = golden.evaluate(made(where), case, soft, state=state, stats_of=stats_of)
            values = done.outputs(suffix)
            found |= golden.named(values, soft)
    return found
