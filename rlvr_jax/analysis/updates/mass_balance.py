"""The mass balance: the effect of one policy gradient step on the mass of correct tokens.

Hu et al. 2025, "BroRL", https://arxiv.org/abs/2510.01180, consider one state and a softmax over
tokens with probabilities p. There are N samples. The reward is R_c for correct tokens, R_w for
incorrect tokens, and 0 for tokens that were not sampled. To first order in the rate η

    Δz_i   = (η/N) p_i (R_i 1[i sampled] - S),   S = R_c P⁺ + R_w P⁻
    ΔQ⁺    = (η/N) [(R_c - S) Q⁻ A + (S - R_w) Q⁺ B + S (Q⁺ U⁻ - Q⁻ U⁺)]

Q⁺ and Q⁻ are the probabilities of correct and incorrect tokens, P⁺ and P⁻ those of sampled correct
and incorrect tokens. A and B are the sums of p² over sampled correct and incorrect tokens, U⁺ and
U⁻ the sums over tokens that were not sampled. Sampled tokens never lower Q⁺, because R_c ≥ S ≥ R_w
if R_c ≥ 0 ≥ R_w. The last term can lower it, and vanishes if all tokens are sampled. The statement
is about signs; the factor 1/N is the average over samples.
"""

from typing import NamedTuple

import numpy as np


class MassBalance(NamedTuple):
    """The change of Q⁺ in one step, by term.

    Fields:
      sampled_correct, sampled_incorrect, unsampled: [...], the three terms.
      change: [...], their sum.
      direct: [...], the change as a sum over correct tokens, Σ p_i (Δz_i - Σ_j p_j Δz_j).
      step: [..., V], Δz.
      baseline: [...], S.
      correct_mass: [...], Q⁺ before the step.
    """

    sampled_correct: np.ndarray
    sampled_incorrect: np.ndarray
    unsampled: np.ndarray
    change: np.ndarray
    direct: np.ndarray
    step: np.ndarray
    baseline: np.ndarray
    correct_mass: np.ndarray


def mass_balance(
    probability: np.ndarray,
    sampled: np.ndarray,
    correct: np.ndarray,
    samples: np.ndarray,
    *,
    correct_reward: float = 1.0,
    incorrect_reward: float = -1.0,
    learning_rate: float = 1.0,
) -> MassBalance:
    """Effect of one step on the probability of correct tokens.

    Args:
      probability: p, [..., V], with the sum 1.
      sampled: bool [..., V], tokens that occur among the samples.
      correct: bool [V] or [..., V].
      samples: number of samples, [...] (N).
      correct_reward, incorrect_reward: R_c and R_w.
      learning_rate: size of the step (η).
    Raises:
      ValueError: probabilities do not sum to 1, or there is no sample.
    """
    p = np.asarray(probability, float)
    total = p.sum(axis=-1)
    if not np.allclose(total, 1):
        raise ValueError(f"mass_balance: probability must sum to 1, got {total.ravel()[:3]}")
    if np.any(np.asarray(samples) < 1):
        raise ValueError(f"mass_balance: samples must be at least 1, got {np.min(samples)}")
    correct = np.broadcast_to(correct, p.shape)
    rate = learning_rate / np.asarray(samples, float)

    def mass(where, power=1):
        return np.sum(np.where(where, p**power, 0), axis=-1)

    correct_mass, incorrect_mass = mass(correct), mass(~correct)
    baseline = correct_reward * mass(correct & sampled) + incorrect_reward * mass(
        ~correct & sampled
    )
    gained = rate * (correct_reward - baseline) * incorrect_mass * mass(correct & sampled, 2)
    freed = rate * (baseline - incorrect_reward) * correct_mass * mass(~correct & sampled, 2)
    left = correct_mass * mass(~correct & ~sampled, 2) - incorrect_mass * mass(
        correct & ~sampled, 2
    )
    unsampled = rate * baseline * left
    reward = np.where(sampled, np.where(correct, correct_reward, incorrect_reward), 0.0)
    step = rate[..., None] * p * (reward - baseline[..., None])
    moved = p * (step - np.sum(p * step, axis=-1, keepdims=True))
    direct = np.sum(np.where(correct, moved, 0), axis=-1)
    change = gained + freed + unsampled
    return MassBalance(gained, freed, unsampled, change, direct, step, baseline, correct_mass)
