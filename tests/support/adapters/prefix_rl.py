"""PrefixRL's vectors: the first step of rows of another policy is their prefix."""

import golden_vectors as golden
import jax
import jax.numpy as jnp
import numpy as np

from rlvr_jax.experience.given import behind_given
from rlvr_jax.methods import recipe


def outputs(case, hyper):
    del hyper
    batch = begun(case)
    done = golden.evaluate(recipe("prefix_rl"), case, batch=batch)
    return {
        **done.outputs(),
        "loss_mask": batch.mask,
    }


def begun(case):
    """The record as if the prefixes had been given and the rest drawn behind them."""
    data, rows = golden.inputs(case), jax.tree.map(np.asarray, golden.rollouts(case))
    first = (data["step_ids"] == 0) & (np.asarray(data["off_policy"]) == 1)[:, None] & rows.mask
    number = first.sum(axis=1)
    assert (first == (np.arange(first.shape[1])[None] < number[:, None])).all()
    width = first.shape[1]
    place = np.minimum(np.arange(width)[None] + number[:, None], width - 1)

    def behind(values):
        """What stands behind the prefix, moved to the beginning."""
        if values.shape[:2] != first.shape:
            return values
        spread = place.reshape(place.shape + (1,) * (values.ndim - 2))
        return np.take_along_axis(values, spread, axis=1)

    sampled = jax.tree.map(behind, rows)
    given = [row[:end].tolist() for row, end in zip(rows.tokens, number, strict=True)]
    length = rows.length - number
    mask = np.arange(width)[None] < length[:, None]
    sampled = sampled.replace(length=length.astype(np.int32), mask=mask)
    untrained = np.zeros(len(given), bool)
    prompts = rows.prompt_tokens, rows.prompt_length
    whole = behind_given(sampled, *prompts, given, untrained, width)
    return jax.tree.map(jnp.asarray, whole)
