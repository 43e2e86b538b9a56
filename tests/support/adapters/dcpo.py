"""DCPO's vectors. The state is the estimate of this batch itself."""

import golden_vectors as golden
from adapters.common import both, recipe_with

from rlvr_jax.methods.entropy.dcpo import EntropyEstimate
from rlvr_jax.objectives.statistics.masked import masked_mean

INSIDE = "a step on the way to the advantages"
LEFT_OUT = {
    "temperature": INSIDE,
    "target_ratio": INSIDE,
    "target_ratio_high": INSIDE,
    "target_ratio_low": INSIDE,
}


@both
def outputs(case, hyper, soft):
    def made(gap_cap):
        return recipe_with(
            hyper,
            "dcpo",
            entropy_target=hyper["target"],
            temperature_high=hyper["t_high"],
            temperature_low=hyper["t_low"],
            outcome_threshold=hyper["threshold"],
            gap_cap=gap_cap,
        )

    batch = golden.rollouts(case, soft, temperatures=(hyper["t_high"], hyper["t_low"]))
    state = {"mix_in_tempered_policy": EntropyEstimate(-masked_mean(batch.old_logp, batch.mask))}
    done = golden.evaluate(made(hyper["gap_cap"]), case, soft, state=state, batch=batch)
    uncapped = golden.evaluate(made(float("inf")), case, soft, state=state, batch=batch)
    return {
        **done.outputs(),
        "entropy_estimate": done.state["mix_in_tempered_policy"].entropy,
        "alpha": done.metrics["mixture_weight"],
        "alpha_uncapped": uncapped.metrics["mixture_weight"],
        "good": batch.outcome > hyper["threshold"],
    }
