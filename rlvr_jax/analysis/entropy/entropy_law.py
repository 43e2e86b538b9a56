"""The exchange of entropy for reward: R = -a e^H + b, and the covariance that drives it.

Cui et al. 2025, "The Entropy Mechanism of Reinforcement Learning for Reasoning Language Models",
https://arxiv.org/abs/2505.22617.

In a run without entropy control, the score R is a function of the mean token entropy H. H is in
nats, over the whole vocabulary, at the sampling temperature. The largest score, at H = 0, is b - a.
Runs with Clip-Cov, an entropy bonus or a high clip do not follow the curve. The first steps do not
follow it either, while the policy learns the format. Each run has its own a and b.

The cause is a covariance. For one state with independent logits z, and one step of natural policy
gradient with rate η:

    H' - H ≈ -η Cov_{v ~ π}(log π(v), A(v))
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from rlvr_jax.analysis.arrays import columns


@dataclass(frozen=True)
class EntropyLaw:
    """A fitted R = -a e^H + b.

    Fields:
      a, b: in units of the score; both grow with the model and depend on the data.
      r_squared: fraction of the variance of R that the fit explains; NaN if R is constant.
      rmse: root of the mean squared residual, in units of the score.
      num_points: number of fitted points.
    """

    a: float
    b: float
    r_squared: float
    rmse: float
    num_points: int

    @property
    def ceiling(self) -> float:
        """The score at H = 0, when all entropy has been spent."""
        return self.b - self.a

    def predict(self, entropy: ArrayLike) -> np.ndarray:
        """The score at these entropies (nats)."""
        return self.b - self.a * np.exp(np.asarray(entropy, float))


def fit_entropy_law(entropy: ArrayLike, reward: ArrayLike) -> EntropyLaw:
    """Fits R = -a e^H + b by least squares of R on e^H.

    a = -Cov(e^H, R) / Var(e^H), b = mean R + a mean e^H. To test a prediction, fit the first points
    and compare `predict` with the rest.

    Args:
      entropy: H, [N] nats, one point per step (or per mean of some steps).
      reward: R, [N] score of the same steps.
    Raises:
      ValueError: there are fewer than two points, shapes differ, values are not finite, or the
        entropy is constant.
    """
    entropy, reward = columns("fit_entropy_law", "N", 2, entropy=entropy, reward=reward)
    for name, values in (("entropy", entropy), ("reward", reward)):
        if not np.isfinite(values).all():
            raise ValueError(f"fit_entropy_law: {name} must be finite, got {values}")
    x = np.exp(entropy)
    spread, rise = x - x.mean(), reward - reward.mean()
    variance = np.mean(spread**2)
    if variance <= _rounding(x):
        raise ValueError(f"fit_entropy_law: entropy must vary, got {entropy[0]} at every point")
    a = -np.mean(spread * rise) / variance
    squared = np.mean((rise + a * spread) ** 2)
    total = np.mean(rise**2)
    return EntropyLaw(
        a=float(a),
        b=float(reward.mean() + a * x.mean()),
        r_squared=float(1 - squared / total) if total > _rounding(reward) else float("nan"),
        rmse=float(np.sqrt(squared)),
        num_points=len(x),
    )


def _rounding(values: np.ndarray) -> float:
    """Bound of the variance of equal values, because their mean is rounded."""
    return float((len(values) * np.finfo(float).eps * np.abs(values).max()) ** 2)


def token_covariance(logp: ArrayLike, advantage: ArrayLike, mask: ArrayLike) -> np.ndarray:
    """Each token's term of the covariance of advantage and log-prob.

    (A - mean A)(log π - mean log π), with means over all tokens of the mask. The mean of the terms
    estimates the covariance. If it is positive, an update lowers the entropy.

    Args:
      logp: [B, T] nats.
      advantage: [B, T], or [B, 1] with one advantage per response.
      mask: bool [B, T].
    Returns:
      float64 [B, T], 0 off the mask.
    """
    mask = np.asarray(mask, bool)
    logp = np.asarray(logp, float)
    advantage = np.asarray(advantage, float)
    if advantage.shape not in (logp.shape, (len(logp), 1)):
        raise ValueError(
            f"token_covariance: advantage must be {list(logp.shape)} as logp, or"
            f" {[len(logp), 1]}, got {list(advantage.shape)}"
        )
    advantage = np.broadcast_to(advantage, logp.shape)
    if not mask.any():
        return np.zeros(logp.shape)
    product = (advantage - advantage[mask].mean()) * (logp - logp[mask].mean())
    return np.where(mask, product, 0.0)


def entropy_change(log_probs: ArrayLike, advantage: ArrayLike) -> np.ndarray:
    """Computes dH/dη of a natural policy-gradient step on independent logits: -Cov_π(log π, A).

    Args:
      log_probs: [..., V] log π, nats, over the whole vocabulary.
      advantage: [..., V], advantage of every token of the vocabulary.
    Returns:
      [...] nats per unit of step size.
    """
    log_probs, advantage = np.asarray(log_probs, float), np.asarray(advantage, float)
    probs = np.exp(log_probs)
    centred = advantage - np.sum(probs * advantage, axis=-1, keepdims=True)
    # Tokens with probability 0 do not count: 0 · log 0 is 0.
    return -np.sum(special.xlogy(probs, probs) * centred, axis=-1)
