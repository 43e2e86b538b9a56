"""HAPO's vectors: the method, and the slips of the released code (`_released`)."""

import golden_vectors as golden
from adapters.common import on_mask, recipe_with

from rlvr_jax.methods.entropy.hapo import entropy_score

FELL_BACK = "only its mean is a metric"
LEFT_OUT = {
    "pivot_log_entropy": "a step on the way to the score",
    "scale_std": "a step on the way to the score",
    "temperature": "the sampling of `hapo_temperature`",
    **{f"fell_back{suffix}": FELL_BACK for suffix in ("", "_soft")},
    **{f"fell_back_released{suffix}": FELL_BACK for suffix in ("", "_soft")},
}


def outputs(case, hyper):
    batch, entropy = golden.rollouts(case), golden.stats(case).entropy
    found = {"h": entropy_score(entropy, batch.mask, batch, hyper["pivot"])}
    for suffix, released in (("", False), ("_released", True)):
        for soft in (False, True):
            values = one(case, hyper, soft, released)
            named = {f"{name}{suffix}": value for name, value in values.items()}
            found |= golden.named(named, soft)
    return found


def one(case, hyper, soft, released):
    def made(credit_strength):
        return recipe_with(
            hyper,
            "hapo",
            clip_strength=hyper["alpha"],
            credit_strength=credit_strength,
            released=released,
        )

    done = golden.evaluate(made(hyper["beta"]), case, soft)
    batch = done.batch
    return {
        **done.outputs(),
        "base_advantages": golden.signals(made(0.0), case, soft).advantage,
        "clip_low": on_mask(done.signals.clip_low, batch),
        "clip_high": on_mask(done.signals.clip_high, batch),
    }
