"""ProGRPO's vectors. The prompt's second token has the mean graded reward of its group."""

import golden_vectors as golden
from adapters.common import recipe_with, row_advantages

from rlvr_jax.methods.exploration.progrpo import (
    any_reward,
    low_probability_confidence,
    low_probability_tokens,
    mixed_reward,
    prompt_confidence,
)


def outputs(case, hyper):
    def made(where):
        return recipe_with(
            hyper, "progrpo", shift_coefficient=hyper["alpha"], fraction=hyper["share"], where=where
        )

    done = golden.evaluate(made(any_reward), case)
    mixed = golden.evaluate(made(mixed_reward), case)
    batch, fraction = done.batch, hyper["share"]
    return {
        **done.outputs(),
        **mixed.outputs("_mixed_only"),
        "confidence": low_probability_confidence(batch.old_logp, batch.mask, fraction),
        "prompt_confidence": prompt_confidence(batch, fraction),
        "low_probability": low_probability_tokens(batch.old_logp, batch.mask, fraction),
        "grpo_advantages": row_advantages(made(any_reward), batch),
    }
