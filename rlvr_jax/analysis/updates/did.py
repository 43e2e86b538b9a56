"""Differential information: the factor by which an update changes each response's probability.

Won et al. 2025, "Differential Information", https://arxiv.org/abs/2505.23761 (a reconstruction from
the abstract). For an update from π_ref to π, a response y has

    q(y) = (π(y) / π_ref(y)) / Σ_y' π(y') / π_ref(y')        margin = log-ratio_w - log-ratio_l

If preferences follow a power of q, β log π/π_ref is the reward whose optimum is π. If chosen
responses are sampled from π, rejected responses must be sampled from

    log π_l = (1 - β) log π + β log π_ref + const

H(q) is low if the update reinforces few responses. It is high if the update smooths the policy;
chosen responses then lose probability. For samples y_i of π, with self-normalised weights w_i ∝ 1 /
π_ref(y_i):

    log Ẑ = log mean 1/π_ref(y_i),        H ≈ log Ẑ - Σ w_i log(π/π_ref)(y_i)

For long responses one sample has nearly all of the weight, and `effective_samples` is near 1. The
entropy over the set of samples is more robust.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from rlvr_jax.analysis.arrays import log_softmax


def differential_information(logp: ArrayLike, reference_logp: ArrayLike) -> np.ndarray:
    """log q over the responses of a prompt, [..., N] nats.

    Args:
      logp, reference_logp: [..., N], summed over the tokens of each response.
    """
    return log_softmax(np.asarray(logp, float) - np.asarray(reference_logp, float))


def set_entropy(log_q: ArrayLike) -> np.ndarray:
    """Entropy of q over the sampled responses, [...] nats."""
    return np.sum(special.entr(np.exp(np.asarray(log_q, float))), axis=-1)


def sampled_entropy(logp: ArrayLike, reference_logp: ArrayLike) -> np.ndarray:
    """The estimate of H(q) over all responses from N samples of π, [...] nats."""
    reference = np.asarray(reference_logp, float)
    ratio = np.asarray(logp, float) - reference
    log_z = special.logsumexp(-reference, axis=-1) - np.log(reference.shape[-1])
    weights = np.exp(log_softmax(-reference))
    return log_z - np.sum(weights * ratio, axis=-1)


def effective_samples(reference_logp: ArrayLike) -> np.ndarray:
    """1 / Σ w² of the weights of `sampled_entropy`, [...], in [1, N]; near 1 it is unreliable."""
    return np.exp(-special.logsumexp(2 * log_softmax(-np.asarray(reference_logp, float)), axis=-1))


def rejected_distribution(
    logp: ArrayLike, reference_logp: ArrayLike, scale: float = 0.1
) -> np.ndarray:
    """log π_l over the responses of a prompt, [..., N]: the distribution of rejected responses.

    Args:
      logp, reference_logp: [..., N], summed over tokens.
      scale: β. From 1 on the preference for π is inverted. The default is ours.
    """
    mixed = (1 - scale) * np.asarray(logp, float) + scale * np.asarray(reference_logp, float)
    return log_softmax(mixed)


def prefers(margin: ArrayLike, scale: float = 0.1) -> np.ndarray:
    """σ(β margin): the probability that the chosen response is preferred."""
    return special.expit(scale * np.asarray(margin, float))
