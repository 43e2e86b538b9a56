"""ACE: a larger penalty for incorrect responses that training has made more likely.

"Overconfident Errors Need Stronger Correction", https://arxiv.org/abs/2602.21420

    c_i  = Σ_t (logp_t - reference_logp_t)
    A'_i = A_i (1 + α ln(1 + e^{c_i})) where A_i < 0, else A_i = (R_i - mean) / (std + 1e-6)
    loss = Σ max(-A' ρ, -A' clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ n_i

A reconstruction from the abstract, which defines the shift c. The multiplier is our reading of
"scaled by a softplus, positives untouched". α = 1 (`strength`) is ours; the clip is DAPO's. Before
any training, c is 0 and the factor 1.69; with `gate=jax.nn.relu` it is 1.

Reports: with DAPO, 96.1 % pass@32 on MATH-500. On three model families, up to 3.0 points of
pass@32, and pass@1 is not lower (a review page).
Traps: c is a sum over tokens without a cap. After some training, it multiplies incorrect responses
by 10 to 100. The method reads the reference although it has no KL.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from rlvr_jax.objectives import Transform, clipped_objective, masked_mean, masked_sum, part
from rlvr_jax.types import LOSS_ON_BRACKETS, Method, Recipe, arguments_of, replace
from rlvr_jax.types.hyperparameters import NonNegative


@part(reads={"logp", "reference_logp"}, writes={"advantage"})
def amplify_confident_errors(
    strength: NonNegative = 1.0, gate: Callable[[Array], Array] = jax.nn.softplus
) -> Transform:
    """Amplifies errors that became likelier: A' = A · (1 + α gate(c_i)) where A < 0.

    c is a sum over all tokens: tens of nats are usual after some training.

    Args:
      strength: weight of the gate (α).
      gate: function of c; softplus is 0.69 at c = 0, so it already acts on the untrained policy.
    Metrics: error_factor (mean factor of an advantage over the tokens).
    """

    def apply(signals, context, state):
        mask, advantage = signals.mask, signals.advantage
        difference = jax.lax.stop_gradient(context.stats.logp) - context.rollouts.reference_logp
        shift = masked_sum(difference, mask, axis=1)[:, None]
        factor = jnp.where(advantage < 0, 1 + strength * gate(shift), 1)
        signals = replace(signals, advantage=jnp.where(mask, factor * advantage, 0))
        return signals, state, {"error_factor": masked_mean(factor, mask)}

    return apply


@arguments_of(clipped_objective, "clip_low", "clip_high", "epsilon", clip_high=0.28)
def ace(
    strength: NonNegative = 1.0, gate: Callable[[Array], Array] = jax.nn.softplus, **clip: Any
) -> Recipe:
    """Scales negative group-normalized advantages by the policy's drift towards them.

    Args:
      strength: strength of the amplification (α); with 0 no reference is required.
      gate: function of the drift c, `jax.nn.softplus` or `jax.nn.relu`.
    """
    transforms = [amplify_confident_errors(strength, gate)] if strength else []
    return Recipe(clipped_objective(transforms=transforms, **clip))


METHOD = Method(
    ace, changes="advantage", gradient="stopped", evidence="reconstruction", shown=LOSS_ON_BRACKETS
)
