"""The critic of an objective: the returns that it is fitted to, and its loss."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.arguments import check_arguments
from rlvr_jax.objectives.algebra.inputs import measured, on_mask
from rlvr_jax.objectives.algebra.parts import Context, Transform
from rlvr_jax.types import Part, Rollouts, Signals, TokenStats, Values, part
from rlvr_jax.types.hyperparameters import Bound

Estimate = Callable[[Rollouts], Float[Array, "B T"]]
"""Numbers of tokens from their records, such as targets of a critic: rollouts -> [B, T]."""
Trunk = Literal["own", "policy"]


@dataclass(frozen=True, eq=False, repr=False)
class Critic(Part):
    """The critic whose estimates an objective reads (record `values`).

    Fields:
      returns: (rollouts) -> G [B, T], the target of each token's value. Each row is computed by
        itself. It may read `values`, `old_logp` and the records of the objective.
      clip: half-width of the trust region of `value_loss`; infinite: none.
      trunk: network whose hidden states the linear head reads. "own" starts as the policy and is
        trained with the head. "policy" is the policy itself, which gets no gradient from the head:
        head and optimizer take only kilobytes.
      weigh: (rollouts of an update) -> weights [B, T] of the tokens' losses. The weighted sum is
        divided by the number of tokens. None: all weights are 1.
    """

    returns: Estimate
    clip: Bound
    trunk: Trunk = "own"
    weigh: Estimate | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_arguments(Critic, vars(self))


def _token_values(rollouts: Rollouts) -> Float[Array, "B T"]:
    return rollouts.records["values"]


@part
def critic_of(
    estimator: Transform, clip: Bound, value: Estimate = _token_values, trunk: Trunk = "own"
) -> Critic:
    """The critic of an advantage: fitted to G = Â + V, before any whitening.

    Args:
      estimator: computes Â from the reward and `values`; without state, and row by row.
      clip, trunk: see `Critic`.
      value: V, the baseline of Â, from the values of the tokens.
    Raises:
      ValueError: the estimator does not read `values`, or reads a statistic of the policy.
    """
    if "values" not in estimator.reads or measured(estimator.reads) - {"logp"}:
        raise ValueError(
            "critic_of: estimator must read values and no statistic of a policy, got"
            f" {estimator.label} that reads {sorted(estimator.reads)}"
        )

    def returns(rollouts):
        _, rollouts = on_mask(TokenStats(logp=rollouts.records["values"]), rollouts)
        signals = Signals.neutral(rollouts.mask, rollouts.records["values"].dtype)
        # An estimator that reads the policy or a random key fails here.
        context = Context(TokenStats(), rollouts, rollouts.old_logp, None)
        signals, _, _ = estimator.apply(signals, context, ())
        return jnp.where(rollouts.mask, signals.advantage + value(rollouts), 0)

    return Critic(returns, clip, trunk)


def value_loss(values: Values, old_values: Values, returns: Values, clip: float) -> Values:
    """The clipped loss of a critic at every token, ½ max((V - G)², (V_clip - G)²).

    V_clip = V_old + clip(V - V_old, ±ε).

    The gradient is 0 where the clipped error is larger than the unclipped one. So the loss stops
    pulling a value that has moved more than ε towards the return.

    Args:
      values: V of the critic that is fitted; carries the gradient.
      old_values: V_old, the values at the time the batch was sampled.
      returns: G, the target: `generalized_advantages` plus V_old, before any whitening.
      clip: ε, half-width of the trust region around V_old.
    Source: Schulman et al. 2017, https://arxiv.org/abs/1707.06347, as in
      https://github.com/Open-Reasoner-Zero/Open-Reasoner-Zero.
    """
    moved = values - old_values
    bound = jax.lax.stop_gradient(old_values + jnp.clip(moved, -clip, clip))
    clipped = jnp.where(jnp.abs(moved) <= clip, values, bound)
    return jnp.maximum((values - returns) ** 2, (clipped - returns) ** 2) / 2
