"""Rewards of those who judge: verdicts against labels, ratings against outcomes, odds of yes."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

__all__ = ["odds_of_yes", "rating_rewards", "verdict_reward"]


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
