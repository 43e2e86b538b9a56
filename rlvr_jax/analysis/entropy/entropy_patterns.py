"""Tokens with high entropy: forks, overlap with the base, change by percentile, branching.

Wang et al. 2025, "Beyond the 80/20 Rule", https://arxiv.org/abs/2506.01939 (forking tokens,
overlap, change by percentile, words), and Deng et al. 2025, "From Trial-and-Error to Improvement",
https://arxiv.org/abs/2508.07534 (branching, positions). The stages of a run, classes of tokens and
unsolvable problems of that paper are in `stages`, `token_classes` and `boundary.math_beyond`.

All numbers are over the response tokens of a pool of rollouts. Entropies are those of the whole
distribution at temperature 1; samplers often report entropies at the sampling temperature.

Base and current policy are compared on equal tokens, which both score. In float32, a token near the
threshold can be on either side: compare masks by the fraction of tokens that differ.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rlvr_jax.analysis.arrays import binned_mean, fraction_of, log_softmax, masked_mean

_QUANTILES = (0.5, 0.8, 0.9, 0.95, 0.99)


class Forks(NamedTuple):
    """The tokens of highest entropy.

    Fields:
      mask: bool [B, T]. threshold: nats, the smallest entropy of a forking token.
    """

    mask: np.ndarray
    threshold: float


def entropy_quantiles(
    entropy: ArrayLike, mask: ArrayLike, quantiles: Sequence[float] = _QUANTILES
) -> np.ndarray:
    """Quantiles (linear interpolation) of the entropy over the tokens on the mask, nats.

    Raises:
      ValueError: there is no token on the mask.
    """
    return np.quantile(_tokens("entropy_quantiles", entropy, mask), quantiles)


def forks(entropy: ArrayLike, mask: ArrayLike, fraction: float = 0.2) -> Forks:
    """The forking tokens: those at or above the (1 - fraction) quantile of the pool.

    Args:
      entropy: [B, T] nats. mask: bool [B, T].
      fraction: ρ, in (0, 1). If the threshold is entropy 0, all tokens are forking tokens.
    """
    if not 0 < fraction < 1:
        raise ValueError(f"forks: fraction must be in (0, 1), got {fraction}")
    threshold = float(np.quantile(_tokens("forks", entropy, mask), 1 - fraction))
    return Forks(np.asarray(mask, bool) & (np.asarray(entropy) >= threshold), threshold)


def fork_overlap(base: ArrayLike, now: ArrayLike) -> tuple[float, float]:
    """|A ∩ B| / |A| and |A ∩ B| / |A ∪ B| of two fork masks on equal tokens; A is the base's
    mask."""
    base, now = np.asarray(base, bool), np.asarray(now, bool)
    common = np.sum(base & now)
    return fraction_of(common, np.sum(base)), fraction_of(common, np.sum(base | now))


def change_by_percentile(
    base_entropy: ArrayLike, entropy: ArrayLike, mask: ArrayLike, bins: int = 10
) -> np.ndarray:
    """Mean change of the entropy of tokens, by their entropy under the base, [bins] nats.

    Edges are the quantiles 0, 1/K, … 1 of the base's entropy. Bin k has edge_k ≤ H < edge_k+1, and
    the last bin also its upper edge. An empty bin (equal edges) has 0.

    Args:
      base_entropy, entropy: [B, T] nats, of the same tokens.
      mask: bool [B, T].
      bins: number of bins (K).
    """
    base = _tokens("change_by_percentile", base_entropy, mask)
    change = _tokens("change_by_percentile", entropy, mask) - base
    edges = np.quantile(base, np.linspace(0, 1, bins + 1))
    place = np.clip(np.searchsorted(edges, base, side="right") - 1, 0, bins - 1)
    return binned_mean(change, place, bins)


def position_profile(entropy: ArrayLike, mask: ArrayLike, parts: int = 4) -> np.ndarray:
    """Mean entropy by relative position in the response, [parts] nats; 0 for an empty part.

    A token is in part ⌊parts · position / length⌋. Positions count tokens on the mask, from 0.
    """
    mask = np.asarray(mask, bool)
    place = np.cumsum(mask, axis=1) - 1
    part = parts * place // np.maximum(mask.sum(axis=1, keepdims=True), 1)
    return binned_mean(np.asarray(entropy, float)[mask], part[mask], parts)


def entropy_by_outcome(
    entropy: ArrayLike, mask: ArrayLike, correct: ArrayLike
) -> tuple[float, float]:
    """Mean entropy of the tokens of correct and of incorrect rollouts (bool [B]); 0 without any."""
    mask, correct = np.asarray(mask, bool), np.asarray(correct, bool)[:, None]
    return masked_mean(entropy, mask & correct), masked_mean(entropy, mask & ~correct)


def branching(logits: ArrayLike, top_p: float = 0.95) -> np.ndarray:
    """Size of the smallest set of tokens with mass top_p, int [...] of [..., V].

    The token that crosses the threshold belongs to the set, so the set has at least one token.
    """
    return branching_of_top(np.sort(log_softmax(logits), axis=-1)[..., ::-1], top_p)


def branching_of_top(logp: ArrayLike, top_p: float = 0.95) -> np.ndarray:
    """Returns `branching` of the k largest log-probs, descending, int [...] of [..., k]. The
    value k means k or more: the log-probs may have less than the mass."""
    p = np.exp(np.asarray(logp, float))
    before = np.cumsum(p, axis=-1) - p
    return np.sum(before < top_p, axis=-1)


class WordEntropy(NamedTuple):
    """One token string: its number of occurrences, and its mean entropy (nats)."""

    word: str
    number: int
    entropy: float


def word_entropies(
    words: Sequence[Sequence[str]], entropy: Sequence[ArrayLike], fewest: int = 20
) -> list[WordEntropy]:
    """Mean entropy by token string, highest first, without strings that are rarer than `fewest`.

    Args:
      words: token strings of each rollout; lengths may differ.
      entropy: entropies of these tokens, nats.
      fewest: least number of occurrences (the default 20 is ours).
    """
    found: dict[str, list[float]] = defaultdict(list)
    for row, values in zip(words, entropy, strict=True):
        for word, value in zip(row, np.asarray(values, float).tolist(), strict=True):
            found[word].append(value)
    rows = [
        WordEntropy(word, len(values), float(np.mean(values)))
        for word, values in found.items()
        if len(values) >= fewest
    ]
    return sorted(rows, key=lambda row: -row.entropy)


def _tokens(function: str, values: ArrayLike, mask: ArrayLike) -> np.ndarray:
    values, mask = np.asarray(values, float), np.asarray(mask, bool)
    if values.shape != mask.shape or not mask.any():
        raise ValueError(
            f"{function}: mask must have the shape {values.shape} and a token on it, got"
            f" {mask.shape} with {mask.sum()}"
        )
    return values[mask]
