"""The signals of a transform on the golden batch."""

import golden_vectors as golden
import numpy as np

from rlvr_jax.objectives import Context
from rlvr_jax.types import Signals, replace


def decided(transform, stats=None, batch=None):
    """Signals and metrics after a transform; A is the reward, the half-widths are 0.2 and 0.3."""
    batch = golden.rollouts("b") if batch is None else batch
    stats = golden.stats("b") if stats is None else stats
    signals = Signals.neutral(batch.mask, np.float64)
    signals = replace(
        signals,
        advantage=signals.advantage + batch.reward[:, None],
        clip_low=signals.weight * 0.2,
        clip_high=signals.weight * 0.3,
    )
    context = Context(stats, batch, batch.old_logp, None)
    signals, _, metrics = transform.apply(signals, context, ())
    return signals, metrics
