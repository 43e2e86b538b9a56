"""Rewards for saying that a question has no answer, and for not being sure of what is wrong."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rlvr_jax.objectives.rewards.parts import Shaping, judged_mean
from rlvr_jax.types.parts import part

__all__ = ["abstention_reward", "confident_abstention"]

Rows = Float[Array, "B"]
Flags = Bool[Array, "B"]


def abstention_reward(answerable: Flags, abstained: Flags, right: Flags, confidence: Rows) -> Rows:
    """What an answer or an abstention earns, by the confidence c of the response.

    | | answers right | answers wrong | abstains |
    |---|---|---|---|
    | answerable | 1 | -c | -½ |
    | unanswerable | -(½ + ½ c) | -(½ + ½ c) | 1 |

    NaN (no reward) where the confidence is not in [0, 1].

    Args:
      answerable: the question has an answer.
      abstained: the response says that it has none, and gives none.
      right: the answer is; it means nothing where there is none.
      confidence: c.
    """
    answered = jnp.where(right, 1.0, -confidence)
    known = jnp.where(abstained, -0.5, answered)
    unknown = jnp.where(abstained, 1.0, -(0.5 + 0.5 * confidence))
    reward = jnp.where(answerable, known, unknown).astype(confidence.dtype)
    return jnp.where((confidence >= 0) & (confidence <= 1), reward, jnp.nan)


@part
def confident_abstention(answerable: int = 0, abstained: int = 1, confidence: int = 2) -> Shaping:
    """`abstention_reward` of columns of the task's rewards; right is an outcome above ½.

    Args:
      answerable, abstained, confidence: columns, the first two of 0 and 1.
    Reads: outcome, component_rewards. Metrics: reward/abstained, reward/right_of_answered,
      reward/hallucinated (share of the unanswerable questions that are answered).
    Raises:
      ValueError: a negative column.
    """
    columns = (answerable, abstained, confidence)
    if min(columns) < 0:
        raise ValueError(f"confident_abstention: columns must be at least 0, got {columns}")

    def apply(rollouts, state, moment):
        del moment
        has, none, sure = (rollouts.component_rewards[:, column] for column in columns)
        known, silent, right = has > 0.5, none > 0.5, rollouts.outcome > 0.5
        reward = abstention_reward(known, silent, right, sure)
        reward = jnp.where(jnp.isnan(has) | jnp.isnan(none), jnp.nan, reward)

        def share(values, where):
            return judged_mean(jnp.where(where, values.astype(sure.dtype), jnp.nan), rollouts)

        metrics = {
            "reward/abstained": share(silent, ~jnp.isnan(none)),
            "reward/right_of_answered": share(right, known & ~silent),
            "reward/hallucinated": share(~silent, ~known & ~jnp.isnan(has)),
        }
        return reward, state, metrics

    reads = frozenset({"component_rewards"})
    return Shaping(apply, reads=reads, columns=max(columns) + 1)
