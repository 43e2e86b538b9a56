"""Advantages of responses in which tokens before the end also have rewards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rlvr_jax.objectives.advantages.returns import discounted_returns, token_rewards
from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.statistics.groups import has_tokens
from rlvr_jax.objectives.statistics.masked import masked_mean, masked_sum
from rlvr_jax.objectives.statistics.steps import Steps, at_tokens, step_ends
from rlvr_jax.types import Mask, Part, Rollouts, Values, is_correct, part, replace
from rlvr_jax.types.hyperparameters import Finite

__all__ = ["ProcessReward", "own_reward", "paid_tokens", "process_to_go"]

AtEnd = Callable[[Rollouts], Array]
"""(rollouts) -> [B], the reward at the last token."""


def own_reward(rollouts: Rollouts) -> Float[Array, "B"]:
    """The reward of the response, as the reward at its last token (`at_end`)."""
    return rollouts.reward


def paid_tokens(
    rollouts: Rollouts, mask: Mask, process: ProcessReward, coefficient: float, at_end: AtEnd
) -> Values:
    """Rewards of tokens: α times the process reward, plus `at_end` at the last token.

    Args:
      rollouts: rows of the update.
      mask: tokens of the loss.
      process: process reward of each token.
      coefficient: weight of the process reward (α).
      at_end: reward of a row that its last token gets.
    """
    own = jnp.where(mask, process.of(rollouts, mask), 0)
    return token_rewards(at_end(rollouts), mask) + coefficient * own


def process_metrics(rollouts: Rollouts, mask: Mask, process: ProcessReward) -> dict[str, Array]:
    """The process reward per response: means over all, correct and incorrect rows with tokens."""
    total = masked_sum(process.of(rollouts, mask), mask, axis=1)
    written, correct = has_tokens(mask), is_correct(rollouts.outcome)
    return {
        "process_reward": masked_mean(total, written),
        "process_reward/correct": masked_mean(total, written & correct),
        "process_reward/incorrect": masked_mean(total, written & ~correct),
    }


@part(writes={"advantage"}, once=True)
def process_to_go(
    process: ProcessReward, coefficient: Finite = 1.0, at_end: AtEnd = own_reward
) -> Transform:
    """A_t = Σ_{s ≥ t} r_s, the sum of the later rewards: process rewards and that of the end.

    Args:
      coefficient: α, the factor of the process reward.
      at_end: reward at the last token: `own_reward`, `nothing_at_the_end`, or a
        `standardized_reward`.
    Metrics: process_reward (mean per response), process_reward/correct, process_reward/incorrect
      (means per correct and per incorrect response).
    """

    def apply(signals, context, state):
        rollouts, mask = context.rollouts, signals.mask
        paid = paid_tokens(rollouts, mask, process, coefficient, at_end)
        returns = discounted_returns(paid, mask, 1.0)
        metrics = process_metrics(rollouts, mask, process)
        return replace(signals, advantage=returns), state, metrics

    return Transform(apply, reads=process.reads)


Table = Float[Array, "B T"]


@dataclass(frozen=True, eq=False, repr=False)
class ProcessReward(Part):
    """Rewards of tokens before the end of a response, such as scores of its steps.

    Fields:
      of: (rollouts, mask) -> [B, T], read on the mask only.
      reads: records of the rollouts that it reads.
    """

    of: Callable[[Rollouts, Bool[Array, "B T"]], Float[Array, "B T"]]
    reads: frozenset[str] = frozenset()


def spread(scores: Table, steps: Steps) -> Float[Array, "B T"]:
    """The score of each step on its last token, 0 elsewhere."""
    return jnp.where(step_ends(steps), at_tokens(scores, steps), 0)
