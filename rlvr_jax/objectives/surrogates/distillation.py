"""Distillation: the loss of a token is the policy's distance from a teacher.

A `Distance` computes one number per token from the distributions of policy and teacher. Each paper
has another distance: SRPO over the whole vocabulary, SDPO over the policy's k most probable tokens.
Only the policy has a gradient.
"""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.objectives.algebra.parts import Context, Options, Surrogate
from rlvr_jax.objectives.statistics.ratios import clamped_token_ratio
from rlvr_jax.objectives.surrogates.policy_gradient import fixed_ratio, with_ratio
from rlvr_jax.types.hyperparameters import Bound
from rlvr_jax.types.parts import Part, part


@dataclass(frozen=True, eq=False, repr=False)
class Distance(Part):
    """The distance between policy and teacher at a token.

    Fields:
      values: (context) -> [B, T].
      reads, options: as in `Surrogate`.
    """

    values: Callable[[Context], Float[Array, "B T"]]
    reads: frozenset[str] = frozenset()
    options: Options = ()


@part
def distilled(distance: Distance, cap: Bound | None = None) -> Surrogate:
    """The distance from a teacher as the policy loss, w D, independent of the advantage.

    Args:
      distance: distance of the policy from the teacher at each token (D).
      cap: of w = sg(min(ρ, cap)), which corrects for the age of the rollouts. ρ is the importance
        ratio of the sampled token, its logarithm clamped to ±20. None: w = 1.
    Source: SDPO, https://github.com/lasgroup/SDPO.
    """

    def loss(signals, context):
        values = distance.values(context)
        if cap is None:
            return values
        ratio = clamped_token_ratio(context.stats.logp, context.old_logp, signals.mask)
        return jax.lax.stop_gradient(jnp.minimum(ratio, cap)) * values

    prepare = with_ratio(fixed_ratio)
    return Surrogate(prepare, loss, reads=distance.reads | {"logp"}, options=distance.options)
