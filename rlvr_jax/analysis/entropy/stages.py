"""The two stages of a run, rise and plateau, and the change of entropy in each.

Deng et al. 2025, "From Trial-and-Error to Improvement", https://arxiv.org/abs/2508.07534: while the
reward rises, mostly the entropy of incorrect responses falls. On the plateau the probabilities of
nearly all tokens are constant. The paper does not define the end of the first stage. Here it is τ
of the least-squares fit

    reward ≈ c + s · min(step, τ),   s > 0,

A run has stages if shuffled orders of the steps rarely have an equally good fit.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rlvr_jax.analysis.arrays import columns

_LEVEL = 0.01
_SHUFFLES = 999
_KEY = 20_250_814  # a fixed seed: every call returns equal stages
_FEWEST = 3


class Stages(NamedTuple):
    """The step at which the reward of a run stops to rise.

    Fields:
      end: τ, the last step of the rise. If the reward still rises, the last step of the run. None:
        no rise is significant at `_LEVEL`.
      rise: s (τ - first step) of the best fit, in units of the reward; 0 if no fit rises.
      p_value: fraction of shuffled orders of the steps with an equally good fit.
    """

    end: float | None
    rise: float
    p_value: float


def stages(steps: ArrayLike, reward: ArrayLike) -> Stages:
    """Fits a rise that is followed by a plateau.

    Args:
      steps: [N], ascending. reward: [N]. Memory grows with N²: thin a long run first.
    """
    steps, reward = columns("stages", "N", _FEWEST, steps=steps, reward=reward)
    if not (np.isfinite(reward).all() and np.isfinite(steps).all()):
        raise ValueError(f"stages: steps and reward must be finite, got {steps} and {reward}")
    ends = steps[1:]
    shapes = np.minimum(steps, ends[:, None])
    shapes -= shapes.mean(axis=1, keepdims=True)
    lengths = np.linalg.norm(shapes, axis=1)
    shapes /= lengths[:, None]
    centred = reward - reward.mean()
    gain = shapes @ centred
    best = int(gain.argmax())
    # A constant reward can differ from its mean by rounding.
    if gain[best] <= len(steps) * np.finfo(float).eps * np.abs(reward).max():
        return Stages(None, 0.0, 1.0)
    random = np.random.default_rng(_KEY)
    shuffled = random.permuted(np.tile(centred, (_SHUFFLES, 1)), axis=1)
    # Rounding does not make a fit better.
    as_good = np.sum((shapes @ shuffled.T).max(axis=0) >= gain[best] * (1 - 1e-12))
    p = float((1 + as_good) / (1 + _SHUFFLES))
    rise = float(gain[best] / lengths[best] * (ends[best] - steps[0]))
    return Stages(float(ends[best]) if p < _LEVEL else None, rise, p)


class OutcomeEntropy(NamedTuple):
    """Entropy of a pool of rollouts by outcome.

    Fields:
      incorrect_fraction: fraction of the tokens that are in incorrect rollouts.
      incorrect, correct: mean entropy of tokens in incorrect and in correct rollouts, nats per
        token; None without such tokens.
    """

    incorrect_fraction: float
    incorrect: float | None
    correct: float | None


def outcome_entropy(entropy: ArrayLike, mask: ArrayLike, correct: ArrayLike) -> OutcomeEntropy:
    """Entropy of the tokens of incorrect and of correct rollouts.

    Args:
      entropy: [B, T] nats. mask: bool [B, T]. correct: bool [B].
    """
    entropy, mask = np.asarray(entropy, float), np.asarray(mask, bool)
    if not mask.any():
        raise ValueError("outcome_entropy: mask must have a token on it, got none")
    good = mask & np.asarray(correct, bool)[:, None]
    incorrect, rest = (entropy[where] for where in (mask & ~good, good))
    return OutcomeEntropy(
        len(incorrect) / int(mask.sum()),
        float(incorrect.mean()) if len(incorrect) else None,
        float(rest.mean()) if len(rest) else None,
    )


def entropy_and_fraction(
    entropy: ArrayLike, incorrect: ArrayLike, correct: ArrayLike
) -> OutcomeEntropy:
    """Entropy by outcome from curves, which lack the number of tokens in incorrect rollouts.

    Entropy is w · incorrect + (1 - w) · correct at every step. Least squares over all steps give w.

    Args:
      entropy, incorrect, correct: [N], N ≥ 1, means over tokens in nats, of the steps that have all
        three.
    """
    entropy, incorrect, correct = (
        np.asarray(values, float) for values in (entropy, incorrect, correct)
    )
    apart = incorrect - correct
    size = float(apart @ apart)
    # If they are equal, w has no effect.
    fraction = float(np.clip(apart @ (entropy - correct) / size, 0, 1)) if size else 0.5
    return OutcomeEntropy(fraction, float(incorrect.mean()), float(correct.mean()))


class OutcomeParts(NamedTuple):
    """A change of mean entropy, nats per token, as a sum of three parts.

    Fields:
      incorrect, correct: change within incorrect and within correct rollouts, weighted by their
        mean fraction of the tokens.
      fractions: change because the fraction of tokens in incorrect rollouts changed.
    """

    incorrect: float
    correct: float
    fractions: float

    @property
    def change(self) -> float:
        """Sum of the three parts."""
        return sum(self)


def change_by_outcome(before: OutcomeEntropy, after: OutcomeEntropy) -> OutcomeParts:
    """Splits a change of entropy by outcome (Kitagawa 1955).

    With w the fraction of incorrect tokens and bars for the mean of before and after,

        ΔH = w̄ ΔH_incorrect + (1 - w̄) ΔH_correct + Δw (H̄_incorrect - H̄_correct).

    A kind of rollouts that occurs in only one pool has no change within it. A kind that occurs in
    neither pool has no part.
    """
    ends = []
    for old, new in ((before.incorrect, after.incorrect), (before.correct, after.correct)):
        known = [value for value in (old, new) if value is not None] or [0.0]
        ends.append((known[0], known[-1]))
    (incorrect, later_incorrect), (correct, later_correct) = ends
    fraction = (before.incorrect_fraction + after.incorrect_fraction) / 2
    moved = after.incorrect_fraction - before.incorrect_fraction
    return OutcomeParts(
        fraction * (later_incorrect - incorrect),
        (1 - fraction) * (later_correct - correct),
        moved * (incorrect + later_incorrect - correct - later_correct) / 2,
    )
