"""Which tokens of a draft another policy takes over, and what it then writes in all.

A draft is verified token by token, from its beginning to the first that is rejected.
"""

from __future__ import annotations

import numpy as np

__all__ = ["acceptance", "accepted_prefix", "emitted_distance", "expected_prefix", "residual"]


def acceptance(log_ratio: np.ndarray, lenience: float) -> np.ndarray:
    """Probability that a token is accepted where it is reached: min(1, e^(b + Δ)).

    Args:
      log_ratio: Δ, log-prob of the token now minus that with which it was drawn.
      lenience: b, nats.
    """
    return np.exp(np.minimum(lenience + log_ratio, 0))


def accepted_prefix(
    log_ratio: np.ndarray, length: np.ndarray, uniform: np.ndarray, lenience: float
) -> np.ndarray:
    """Tokens of each draft before the first that is rejected: where ln u > Δ + b; int [B].

    Args:
      log_ratio: Δ, [B, T].
      length: tokens of the drafts, int [B].
      uniform: u, numbers in [0, 1), [B, T].
      lenience: b, nats.
    """
    there = np.arange(log_ratio.shape[1])[None] < length[:, None]
    rejected = there & (uniform > acceptance(log_ratio, lenience))
    return np.where(rejected.any(axis=1), rejected.argmax(axis=1), length)


def expected_prefix(
    log_ratio: np.ndarray, length: np.ndarray, lenience: float
) -> tuple[np.ndarray, np.ndarray]:
    """Probability that a draft is accepted up to and with each token [B, T], 0 behind its end, and
    their sum, the accepted tokens that are expected [B]."""
    there = np.arange(log_ratio.shape[1])[None] < length[:, None]
    survival = np.where(there, np.cumprod(acceptance(log_ratio, lenience), axis=1), 0)
    return survival, survival.sum(axis=1)


def emitted_distance(logp: np.ndarray, drafted_logp: np.ndarray, lenience: float) -> np.ndarray:
    """Total variation between what verification writes at a token and the policy, ½ Σ |e - p|.

    With q the distribution of the draft and p the policy's, a token is accepted with mass
    hit = q · min(1, e^b p / q), and drawn from p otherwise: e = hit + (1 - Σ hit) p. Speculative
    decoding draws from max(p - q, 0) instead, and has e = p at b = 0.

    Args:
      logp, drafted_logp: of all tokens, under p and q, [..., V].
      lenience: b, nats.
    """
    p, q = np.exp(logp), np.exp(drafted_logp)
    hit = q * acceptance(logp - drafted_logp, lenience)
    emitted = hit + (1 - hit.sum(axis=-1, keepdims=True)) * p
    return np.abs(emitted - p).sum(axis=-1) / 2


def residual(logp: np.ndarray, drafted_logp: np.ndarray) -> np.ndarray:
    """The distribution of what replaces a rejected token, max(p - q, 0) normalized; float64.

    p itself where p = q: nothing is rejected there but by rounding.

    Args:
      logp, drafted_logp: of all tokens, under p and q, [..., V].
    """
    p, q = np.exp(np.asarray(logp, np.float64)), np.exp(np.asarray(drafted_logp, np.float64))
    more = np.maximum(p - q, 0)
    mass = more.sum(axis=-1, keepdims=True)
    return np.where(mass > 0, more, p) / np.where(mass > 0, mass, p.sum(axis=-1, keepdims=True))
