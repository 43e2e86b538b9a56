"""CANON's vectors. Entropies are those of the old policy; the constants of `_weighted` are here."""

import golden_vectors as golden
import jax.numpy as jnp
from adapters.common import both

from rlvr_jax.methods import recipe
from rlvr_jax.methods.entropy.canon import (
    in_high_half,
    inter_fraction_of_success,
    mean_sampling_entropy,
    num_tokens,
    restarting_inter_fraction,
)
from rlvr_jax.objectives.statistics.groups import has_tokens


@both
def outputs(case, hyper, soft):
    data = golden.inputs(case)
    sampled = golden.token_stats(jnp.asarray(data["old_logits"]), jnp.asarray(data["tokens"]))
    batch = golden.rollouts(case, soft).replace(entropy=sampled.entropy)
    settings = {
        "max_length": round(1 / hyper["scale"]),
        "clip_low": hyper["clip_low"],
        "clip_high": hyper["clip_high"],
    }
    chosen = {"inter_fraction": hyper["mu"], "tilt": hyper["alpha"], "bonus": hyper["beta"]}
    by_length = {"condition": num_tokens, "favors_high": False}

    def run(update=None, **changed):
        state = {} if update is None else {"conditional_advantage": jnp.int32(update)}
        method = recipe("canon", **{**settings, **changed})
        return golden.evaluate(method, case, batch=batch, state=state)

    found = {
        "schedule": 1 - restarting_inter_fraction(batch, jnp.arange(151)),
        "advantages_annealed": run(0, inter_fraction=inter_fraction_of_success).signals.advantage,
        "advantages_restart40": run(40, inter_fraction=restarting_inter_fraction).signals.advantage,
        "advantages_weighted": run(
            inter_fraction=0.5, tilt=0.9, bonus=0.05, **by_length
        ).signals.advantage,
    }
    for name, condition, extra in (
        ("entropy", mean_sampling_entropy, {}),
        ("length", num_tokens, by_length),
    ):
        done = run(**chosen, **extra)
        values = condition(batch)
        found |= {
            **done.outputs(f"_{name}"),
            f"metric_{name}": values,
            f"high_{name}": in_high_half(
                values, batch.group, batch.rollout_id, has_tokens(batch.mask)
            ),
        }
    return found
