"""Means over tokens, log-softmax and entropies of histograms, in float64."""

import numpy as np
from numpy.typing import ArrayLike
from scipy import special


def columns(function: str, axis: str, least: int = 0, **given: ArrayLike) -> list[np.ndarray]:
    """Checks that all arguments have one length, and returns them as float arrays [axis].

    Args:
      function, axis: names for the error message.
      least: smallest allowed length.
      given: arguments by name.
    Raises:
      ValueError: the shapes differ, are not one axis, or are shorter than `least`.
    """
    arrays = [np.asarray(values, float) for values in given.values()]
    shapes = [array.shape for array in arrays]
    if len({*shapes}) > 1 or len(shapes[0]) != 1 or shapes[0][0] < least:
        bound = f" with {axis} ≥ {least}" if least else ""
        names, got = (
            f"{', '.join(map(str, first))} and {last}" for *first, last in (given, shapes)
        )
        raise ValueError(f"{function}: {names} must have one shape [{axis}]{bound}, got {got}")
    return arrays


def log_softmax(logits: ArrayLike, axis: int = -1) -> np.ndarray:
    """Log-probabilities of logits along an axis, float64."""
    return special.log_softmax(np.asarray(logits, float), axis=axis)


def row_sum(values: ArrayLike, mask: ArrayLike) -> np.ndarray:
    """Sum over the tokens of each row that are on the mask, [B]; 0 for a row without any."""
    return np.sum(np.where(np.asarray(mask, bool), np.asarray(values, float), 0.0), axis=-1)


def row_mean(values: ArrayLike, mask: ArrayLike) -> np.ndarray:
    """Mean over the tokens of each row that are on the mask, [B]; 0 for a row without any."""
    return row_sum(values, mask) / np.maximum(np.sum(np.asarray(mask, bool), axis=-1), 1)


def masked_mean(values: ArrayLike, mask: ArrayLike) -> float:
    """Mean of the values on the mask; 0 for an empty mask."""
    mask = np.asarray(mask, bool)
    return float(np.asarray(values, float)[mask].mean()) if mask.any() else 0.0


def binned_mean(values: ArrayLike, place: ArrayLike, bins: int) -> np.ndarray:
    """Mean of the values in each bin, [bins]; `place` is int, 0 … bins - 1; 0 for an empty bin."""
    number = np.maximum(np.bincount(place, minlength=bins), 1)
    return np.bincount(place, values, minlength=bins) / number


def perplexity(logp: ArrayLike, mask: ArrayLike) -> np.ndarray:
    """exp(-mean log p) of each row, [B]; 1 for a row without tokens."""
    return np.exp(-row_mean(logp, mask))


def histogram_entropy(counts: ArrayLike) -> float:
    """Entropy (nats) of the fractions of a histogram; 0 for an empty one."""
    counts = np.asarray(counts, float)
    fractions = counts / max(counts.sum(), np.finfo(float).tiny)
    return float(np.sum(special.entr(fractions)))


def fraction_of(part: float, whole: float) -> float:
    """part / whole, 0 where the whole is 0."""
    return float(part / whole) if whole else 0.0
