"""ProGRPO's vectors. The prompt's second token has the mean graded reward of its group."""

import golden_vectors as golden
from adapters.common import row_advantages

from rlvr_jax.methods import recipe
from rlvr_jax.methods.exploration.progrpo import (
    any_reward,
    low_probability_confidence,
    low_probability_tokens,
    mixed_reward,
    prompt_confidence,
)

LEFT_OUT = {}


def outputs(case, hyper):
    def made(where):
        return recipe(
            "progrpo",
            shift_coefficient=hyper["alpha"],
            fraction=hyper["share"],
            where=where,
            clip_low=hyper["clip_low"],
            clip_high=hyper["clip_high"],
        )

    done = golden.evaluate(made(any_reward), case)
    mixed = golden.evaluate(made(mixed_reward), case)
    batch, fraction = done.batch, hyper["share"]
    return {
        "confidence": low_probability_confidence(batch.old_logp, batch.mask, fraction),
        "prompt_confidence": prompt_confidence(batch, fraction),
        "low_probability": low_probability_tokens(batch.old_logp, batch.mask, fraction),
        "grpo_advantages": row_advantages(made(any_reward), batch),
        "advantages": done.signals.advantage,
        "token_loss": done.token_loss,
        "loss": done.loss,
        "dlogits": done.dlogits,
        "advantages_mixed_only": mixed.signals.advantage,
        "token_loss_mixed_only": mixed.token_loss,
        "loss_mixed_only": mixed.loss,
        "dlogits_mixed_only": mixed.dlogits,
    }
