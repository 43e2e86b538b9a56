"""The vectors of the aggregations. A micro batch is one group; its own mean is then averaged."""

import golden_vectors as golden
import jax
import jax.numpy as jnp
import numpy as np

from rlvr_jax.objectives import (
    fixed_length_mean,
    fixed_length_sum,
    group_normalized,
    objective,
    ppo_clip,
    rollout_mean_token_mean,
    rollout_mean_token_sum,
    row_mean_token_mean,
    token_mean,
)
from rlvr_jax.types import Recipe


def of_micro_batches(aggregation, group):
    """The mean over micro batches of what the aggregation gives on each alone."""
    rows = [np.flatnonzero(group == one) for one in np.unique(group)]

    def value(values, mask):
        return sum(aggregation(values[own], mask[own]) for own in rows) / len(rows)

    return value


def outputs(case, hyper):
    batch = golden.rollouts(case, soft=True)
    group, length = np.asarray(batch.group), hyper["max_len"] or batch.mask.shape[1]
    aggregations = {
        "token_mean": token_mean(),
        "seq_mean_token_sum": rollout_mean_token_sum(),
        "seq_mean_token_mean": rollout_mean_token_mean(),
        "seq_mean_token_mean_all": row_mean_token_mean(),
        "dr_grpo": fixed_length_mean(length),
        "seq_sum_norm_verl": fixed_length_sum(length),
        "micro_token_mean": of_micro_batches(token_mean(), group),
        "micro_seq_mean_token_mean": of_micro_batches(rollout_mean_token_mean(), group),
    }
    clipped = objective(
        advantage=group_normalized(),
        surrogate=ppo_clip(hyper["clip"], hyper["clip"]),
        aggregation=token_mean(),
    )
    token_loss = golden.evaluate(Recipe(clipped), case, soft=True).token_loss
    found = {"token_loss": token_loss}
    holed = batch.mask.at[hyper["empty_row"]].set(False)
    for suffix, mask in (("", batch.mask), ("_hole", holed)):
        values = jnp.where(mask, token_loss, 0)
        for name, aggregation in aggregations.items():
            value, weights = jax.value_and_grad(aggregation)(values, mask)
            found |= {f"{name}{suffix}": value, f"w_{name}{suffix}": weights}
    return found
