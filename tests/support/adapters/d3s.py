"""D³S's vectors: graded rewards, a quarter of the way through training."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np
from adapters.common import on_mask, per_rollout, recipe_with

from rlvr_jax.methods.exploration.d3s import DownSamplingState, down_sampling_rows
from rlvr_jax.objectives import has_tokens, masked_std

LEFT_OUT = {"n_keep_per_query": "a number of rows; the rows are compared"}
TOTAL = 1000


def outputs(case, hyper):
    d3s = recipe_with(
        hyper,
        "d3s",
        total_steps=TOTAL,
        group_fraction_start=hyper["keep_init"],
        group_fraction_end=hyper["keep_final"],
        token_fraction_start=hyper["top_init"],
        token_fraction_end=hyper["top_final"],
        batch_fraction=hyper["cross"],
    )
    progress = hyper["progress"]
    state = {"down_sample": DownSamplingState(jnp.asarray(round(progress * TOTAL), jnp.int32))}
    done = golden.evaluate(d3s, case, soft=True, state=state)
    batch, advantage = done.batch, done.signals.advantage
    rows = jnp.asarray(per_rollout(advantage, batch))
    within, across = down_sampling_rows(
        rows,
        batch.group,
        has_tokens(batch.mask),
        batch.rollout_id,
        group_fraction=(1 - progress) * hyper["keep_init"] + progress * hyper["keep_final"],
        batch_fraction=hyper["cross"],
    )
    everyone = jnp.ones_like(across)
    score = jnp.abs(advantage) * batch.entropy
    return {
        **done.outputs(),
        "advantages": advantage,
        "per_query": within,
        "across": across,
        "score": on_mask(np.where(across[:, None], score, 0), batch),
        "keep": done.signals.mask,
        "top_share": done.metrics["token_fraction"],
        "variance_all": masked_std(rows, everyone) ** 2,
        "variance_kept": masked_std(rows, across) ** 2,
    }
