"""The policy gradient with a weight against the reference policy, not the one that sampled."""

import jax
import jax.numpy as jnp

from rlvr_jax.objectives.algebra.parts import Surrogate
from rlvr_jax.objectives.statistics.ratios import token_ratio
from rlvr_jax.types import replace
from rlvr_jax.types.hyperparameters import NonNegative
from rlvr_jax.types.parts import part

__all__ = ["reference_weighted"]


@part
def reference_weighted(clip: NonNegative = 0.3) -> Surrogate:
    """-c logp, c = sg(min(ρ A, clip(ρ, 1 ± ε) A)), ρ = π / π_ref.

    c is detached as a whole: clipped tokens still have a gradient.

    Args:
      clip: ε, at least 0.
    Raises:
      ValueError: a negative clip.
    Source: RLMEC, https://github.com/RUCAIBox/RLMEC.
    """

    def prepare(signals, context):
        reference = context.rollouts.reference_logp
        return replace(
            signals,
            ratio=token_ratio(context.stats.logp, reference, signals.mask),
            clip_low=jnp.full_like(signals.clip_low, clip),
            clip_high=jnp.full_like(signals.clip_high, clip),
        )

    def loss(signals, context):
        return -_weight(signals, clip) * context.stats.logp

    return Surrogate(prepare, loss, reads=frozenset({"reference_logp"}))


def _weight(signals, clip):
    bounded = jnp.clip(signals.ratio, 1 - clip, 1 + clip) * signals.advantage
    return jax.lax.stop_gradient(jnp.minimum(signals.ratio * signals.advantage, bounded))
