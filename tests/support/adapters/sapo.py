"""SAPO's vectors."""

import golden_vectors as golden
import jax
from adapters.common import both, on_mask

from rlvr_jax.methods import recipe
from rlvr_jax.methods.clipping.sapo import sigmoid_gate


@both
def outputs(case, hyper, soft):
    sapo = recipe(
        "sapo",
        positive_temperature=hyper["tau_pos"],
        negative_temperature=hyper["tau_neg"],
        epsilon=hyper["eps"],
    )
    done = golden.evaluate(sapo, case, soft)
    advantage = done.signals.advantage

    def gate(ratio):
        up, down = sigmoid_gate(ratio, hyper["tau_pos"]), sigmoid_gate(ratio, hyper["tau_neg"])
        return jax.numpy.where(advantage > 0, up, down)

    values, slope = jax.jvp(gate, (done.signals.ratio,), (jax.numpy.ones_like(advantage),))
    return {
        **done.outputs(),
        "advantages": advantage,
        "gate": on_mask(values, done.batch),
        "gate_slope": on_mask(slope, done.batch),
    }
