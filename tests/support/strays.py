"""Tokens that a policy has strayed from its sampler in, and what transforms decide of them."""

import golden_vectors as golden
import numpy as np

from rlvr_jax.objectives import Context
from rlvr_jax.types import Signals, replace


def strayed():
    batch = golden.rollouts("b")
    return batch.replace(behaviour_logp=batch.reference_logp)


def decided(*transforms, batch=None):
    """Signals and metrics after the transforms; right answers have A = ½, wrong ones -½."""
    batch = strayed() if batch is None else batch
    context = Context(golden.stats("b"), batch, batch.old_logp, None)
    signals = Signals.neutral(batch.mask, np.float64)
    signals = replace(signals, advantage=signals.advantage + batch.reward[:, None] - 0.5)
    for transform in transforms:
        signals, _, metrics = transform.apply(signals, context, ())
    return signals, metrics
