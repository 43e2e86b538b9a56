"""One step with a surrogate, by the golden batch."""

from typing import NamedTuple

import golden_vectors as golden
import jax
import jax.numpy as jnp
import numpy as np

from rlvr_jax.objectives import Context
from rlvr_jax.types import Signals, replace


class Run(NamedTuple):
    """Losses of the tokens, the gradient of the mean over rollouts of means over tokens, ratios."""

    values: np.ndarray
    slope: np.ndarray
    ratio: np.ndarray
    advantage: np.ndarray


def run(surrogate):
    """Runs a surrogate with A = ±1."""
    batch, logp = golden.rollouts("b"), golden.stats("b").logp
    signals = Signals.neutral(batch.mask, np.float64)
    signals = replace(signals, advantage=signals.advantage + 2 * batch.reward[:, None] - 1)
    length = np.asarray(batch.mask).sum(axis=1, keepdims=True).astype(float)

    def total(logp):
        stats = replace(golden.stats("b"), logp=logp)
        context = Context(stats, batch, batch.old_logp, None)
        prepared = surrogate.prepare(signals, context)
        values = jnp.where(batch.mask, surrogate.loss(prepared, context), 0)
        return jnp.sum(values / length), (values, prepared.ratio)

    slope, (values, ratio) = jax.grad(total, has_aux=True)(logp)
    return Run(*map(np.asarray, (values, slope, ratio, signals.advantage)))
