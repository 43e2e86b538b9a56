"""The distance of two losses on the same batches: how far apart their slopes are."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.objectives.algebra.core import Objective, merged
from rlvr_jax.objectives.algebra.parts import Spec
from rlvr_jax.types import Rollouts, TokenStats, replace
from rlvr_jax.types.parts import part

__all__ = ["measured_against"]

_DECISIONS = "advantage", "weight", "decided_mask"


@part
def measured_against(own: Objective, other: Objective) -> Objective:
    """Returns an objective with one more metric: the distance of its loss from another loss.

    With the derivatives g and h of the two losses by all token statistics of the policy,

        slope_distance = |g - h| / (|g| + |h|)

    is 0 if both losses move every policy in the same way. It is 1 if their slopes are opposite, or
    one of them is 0. Loss and gradient do not change.

    Examples:
      >>> from rlvr_jax import methods
      >>> from rlvr_jax.objectives import measured_against
      >>> clip_cov, grpo = (methods.recipe(name).objective for name in ("clip_cov", "grpo"))
      >>> sorted(measured_against(clip_cov, grpo).reads - clip_cov.reads)
      ['reference_logp']

    Args:
      other: an objective without state, such as that of GRPO.
    Metrics of the loss: those of `own`; slope_distance.
    Raises:
      ValueError: `other` has state, or both set an option to two values.
    """
    spec = Spec(prompts=1, B=1, T=1)
    if jax.tree.leaves(jax.eval_shape(lambda: other.init(spec))):
        raise ValueError(
            "measured_against: other must be an objective without state, such as that of grpo, got"
            f" state of {', '.join(other.init(spec))}"
        )

    def loss(stats: TokenStats, rollouts: Rollouts, state: dict, key: jax.Array):
        total, (moved, metrics) = own.loss(stats, rollouts, state, key)
        fixed = jax.lax.stop_gradient(stats)
        # The other objective decides by itself.
        records = {n: array for n, array in rollouts.records.items() if n not in _DECISIONS}
        free = replace(rollouts, records=records)
        found = _distance(
            jax.grad(lambda at: own.loss(at, rollouts, state, key)[0], allow_int=True)(fixed),
            jax.grad(lambda at: other.loss(at, free, {}, key)[0], allow_int=True)(fixed),
        )
        return total, (moved, {**metrics, "slope_distance": found})

    return replace(
        own,
        loss=loss,
        reads=own.reads | other.reads,
        options=merged({"own": own.options, "other": other.options}),
        records=merged({"own": own.records, "other": other.records}),
    )


def _distance(first: Any, second: Any) -> Float[Array, ""]:
    """|g - h| / (|g| + |h|) over all numbers of two trees; 0 if both are 0."""
    pairs = [
        pair
        for pair in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True)
        if pair[0].dtype != jax.dtypes.float0
    ]
    g, h = (jnp.concatenate([one.ravel() for one in side]) for side in zip(*pairs, strict=True))
    total = jnp.linalg.norm(g) + jnp.linalg.norm(h)
    return jnp.where(total > 0, jnp.linalg.norm(g - h) / jnp.where(total > 0, total, 1), 0)
