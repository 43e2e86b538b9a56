"""The vectors of Clip_B and Clip_V. The policy before the update is the one that sampled."""

import golden_vectors as golden
from adapters.common import both, on_mask

from rlvr_jax.methods import recipe
from rlvr_jax.methods.entropy.entropy_dynamics import entropy_discriminator, expected_discriminator
from rlvr_jax.objectives.statistics.masked import masked_mean, masked_std

LEFT_OUT = dict.fromkeys(
    ("dH_per_step", "dH_per_step_soft"),
    "a product of advantages and discriminators, which are compared",
)


@both
def outputs(case, hyper, soft):
    def made(**deviations):
        method = recipe(
            "entropy_dynamics",
            **deviations,
            max_fraction=hyper["max_frac"],
            clip_low=hyper["clip"],
            clip_high=hyper["clip"],
        )
        return golden.evaluate(method, case, soft)

    by_batch = made(batch_deviations=hyper["mu_b"])
    by_vocabulary = made(batch_deviations=None, vocabulary_deviations=hyper["mu_v"])
    batch = by_batch.batch
    value = entropy_discriminator(batch.old_logp, batch.entropy)
    expected = expected_discriminator(
        batch.entropy, batch.records["old_p_squared"], batch.records["old_p_squared_logp"]
    )
    return {
        **by_batch.outputs("_b"),
        **by_vocabulary.outputs("_v"),
        "entropy": batch.entropy,
        "S": on_mask(value, batch),
        "ES": on_mask(expected, batch),
        "S_centred": on_mask(value - masked_mean(value, batch.mask), batch),
        "D": on_mask(expected - value, batch),
        "std_b": masked_std(value, batch.mask),
        "std_v": masked_std(expected - value, batch.mask),
        "advantages": by_batch.signals.advantage,
        "keep_b": by_batch.signals.mask,
        "keep_v": by_vocabulary.signals.mask,
    }
