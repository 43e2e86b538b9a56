"""Rewards without labels or answers: how sure the policy that wrote a response was of it.

All are means over the tokens of the response but for the probability. They come from what is
recorded of the old policy, and carry no gradient. A response without tokens has 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rlvr_jax.objectives.statistics.certainty import self_certainty, top_margin
from rlvr_jax.objectives.statistics.masked import masked_mean, masked_sum
from rlvr_jax.types import Rollouts

__all__ = [
    "CERTAINTIES",
    "Certainty",
    "certainty_of_distribution",
    "certainty_of_entropy",
    "certainty_of_margin",
    "certainty_of_probability",
    "certainty_of_response",
]


@dataclass(frozen=True, repr=False)
class Certainty:
    """How sure the policy was of each row.

    Fields:
      of: (rollouts, old log-probs [B, T], mask) -> [B].
      reads: statistics of the old policy and records that it reads.
      name: for labels.
      top_k: how many of the likeliest tokens it reads; 0: none.
    """

    of: Callable[[Rollouts, Array, Array], Array]
    reads: frozenset[str]
    name: str
    top_k: int = 0

    def __repr__(self) -> str:
        return self.name


def _mean(values: Float[Array, "B T"], mask: Bool[Array, "B T"]) -> Float[Array, "B"]:
    return masked_mean(values, mask, axis=1)


def _of_distribution(rollouts, old_logp, mask):
    del old_logp
    return _mean(self_certainty(rollouts.old_logsumexp, rollouts.old_mean_logit), mask)


def _of_entropy(rollouts, old_logp, mask):
    del old_logp
    return -_mean(rollouts.entropy, mask)


def _of_response(rollouts, old_logp, mask):
    del rollouts
    return _mean(old_logp, mask)


def _of_probability(rollouts, old_logp, mask):
    del rollouts
    return jnp.where(jnp.any(mask, axis=1), jnp.exp(masked_sum(old_logp, mask, axis=1)), 0)


def _of_margin(rollouts, old_logp, mask):
    del old_logp
    return _mean(top_margin(rollouts.old_topk_logp), mask)


certainty_of_distribution: Certainty = Certainty(
    _of_distribution, frozenset({"old_logsumexp", "old_mean_logit"}), "certainty_of_distribution"
)
"""Mean of log Σ exp z - mean z, which is KL(uniform ‖ p) but for a constant (Intuitor)."""
certainty_of_entropy: Certainty = Certainty(
    _of_entropy, frozenset({"sampled_entropy"}), "certainty_of_entropy"
)
"""Minus the mean entropy when the tokens were drawn (RENT)."""
certainty_of_response: Certainty = Certainty(
    _of_response, frozenset({"logp"}), "certainty_of_response"
)
"""Mean log-prob of the tokens that were drawn."""
certainty_of_probability: Certainty = Certainty(
    _of_probability, frozenset({"logp"}), "certainty_of_probability"
)
"""Probability of the whole response (RLSC): it prefers short ones."""
certainty_of_margin: Certainty = Certainty(
    _of_margin, frozenset({"topk_ids", "old_topk_logp"}), "certainty_of_margin", top_k=2
)
"""Mean of p₁ - p₂, the likeliest token's probability minus the second's (RLSF); in training with
one update per batch, as the likeliest tokens are known in an update's own pass only."""

CERTAINTIES = {
    "self_certainty": certainty_of_distribution,
    "token_entropy": certainty_of_entropy,
    "trajectory_logp": certainty_of_response,
    "probability": certainty_of_probability,
    "disparity": certainty_of_margin,
}
"""By the names that papers use."""
