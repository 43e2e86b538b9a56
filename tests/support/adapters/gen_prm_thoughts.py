"""The vectors of thoughts."""

import golden_vectors as golden

from rlvr_jax.methods import recipe
from rlvr_jax.methods.credit.gen_prm_thoughts import (
    step_labels,
    summed_scores,
    thought_rewards,
    thoughts,
)
from rlvr_jax.objectives import at_tokens, group_mean


def outputs(case, hyper):
    batch = golden.rollouts(case)
    scores, steps = summed_scores(batch, batch.mask)
    _, merged = thoughts(batch, batch.mask)
    done = golden.evaluate(recipe("gen_prm_thoughts", penalty=hyper["penalty"]), case)
    return {
        "step_label": at_tokens(step_labels(scores, steps), steps),
        "thought_ids": merged.index,
        "group_accuracy": group_mean(batch.outcome, batch.group),
        "thought_reward": thought_rewards(hyper["penalty"]).of(batch, batch.mask),
        "returns_to_go": done.signals.advantage,
    }
