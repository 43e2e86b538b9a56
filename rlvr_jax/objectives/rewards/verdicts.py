"""Rewards of those who judge: verdicts against labels, ratings against outcomes, odds of yes."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from rlvr_jax.objectives.rewards.parts import Shaping, judged_mean, shaping
from rlvr_jax.types.hyperparameters import Finite
from rlvr_jax.types.parts import part

__all__ = ["odds_of_yes", "preference_reward", "rating_rewards", "verdict_reward", "where_judged"]


def verdict_reward(verdict: Float[Array, "..."], truth: Float[Array, "..."]) -> Float[Array, "..."]:
    """+1 where the verdict is the truth, -1 elsewhere; one that cannot be read (NaN) is wrong."""
    return jnp.where(verdict == truth, 1.0, -1.0).astype(truth.dtype)


def odds_of_yes(verdict_logp: Float[Array, "B 2"]) -> Float[Array, "B"]:
    """ln p(yes) - ln p(no) at the token of the verdict: what else might stand there cancels."""
    return verdict_logp[:, 0] - verdict_logp[:, 1]


def rating_rewards(
    ratings: Float[np.ndarray, "N N"],
    right: Bool[np.ndarray, "N"],
    tolerance: float,
    least: float = 1.0,
    most: float = 10.0,
) -> tuple[Float[np.ndarray, "N N"], Bool[np.ndarray, "N N"]]:
    """1 for a rating near the outcome of what is rated, else 0; and which pairs are used at all.

    Pairs of two wrong answers are not, nor is a rating of an answer beside itself.

    Args:
      ratings: of i beside j, in [least, most]; NaN: unreadable, worth 0.
      right: of the answers.
      tolerance: distance of the rating, scaled to [0, 1], from the outcome.
      least, most: ends of the scale.
    Source: V_1.
    """
    used = (right[:, None] | right[None]) & ~np.eye(len(right), dtype=bool)
    distance = np.abs((ratings - least) / (most - least) - right[:, None])
    return np.where(used & (distance <= tolerance), 1.0, 0.0), used


@part
def preference_reward(column: int, malformed: Finite = -100.0) -> Shaping:
    """outcome - 1 where the format is kept, so 0 or -1, else `malformed`.

    Args:
      column: of the task's rewards, 1 where the format is kept.
      malformed: the reward where it is not.
    Reads: outcome, component_rewards. Metrics: reward/format, reward/preference (of those that keep
      it).
    Raises:
      ValueError: malformed not finite.
    Source: BR-RM.
    """

    def apply(rollouts, state, moment):
        del moment
        form, own = rollouts.component_rewards[:, column], rollouts.outcome - 1
        kept = form > 0.5
        metrics = {
            "reward/format": judged_mean(form, rollouts),
            "reward/preference": judged_mean(jnp.where(kept, own, jnp.nan), rollouts),
        }
        reward = jnp.where(kept, own, malformed)
        return jnp.where(jnp.isnan(form), jnp.nan, reward), state, metrics

    reads = frozenset({"component_rewards"})
    return Shaping(apply, reads=reads, columns=column + 1)


@part
def where_judged(columns: Sequence[int]) -> Shaping:
    """The reward as it is, none (NaN) where no judge has a verdict: judges that are down accept
    nothing. Rows that were given (`off_policy`) keep theirs, as others are compared with it.

    Args:
      columns: of the task's rewards, the judges; NaN where one has no verdict.
    Reads: reward, component_rewards, off_policy.
    Raises:
      ValueError: no columns, or a negative one.
    """
    columns = list(columns)
    if not columns or min(columns) < 0:
        raise ValueError(f"where_judged: columns must be at least one, from 0, got {columns}")

    def reward(rollouts):
        unknown = jnp.all(jnp.isnan(rollouts.component_rewards[:, columns]), axis=1)
        if rollouts.off_policy is not None:
            unknown = unknown & ~rollouts.off_policy
        return jnp.where(unknown, jnp.nan, rollouts.reward)

    return shaping(reward, columns=max(columns) + 1)
