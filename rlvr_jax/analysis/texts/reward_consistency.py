"""Consistency of a reward: does it distinguish a prompt's answer from that of a similar prompt?

Shen et al. 2023, "The Trickle-down Impact of Reward (In-)consistency on RLHF",
https://arxiv.org/abs/2309.16155. A pair has similar prompts x₀, x₁ with different correct answers
y₀, y₁. R_ij is the reward of prompt i with answer j:

    response side   R₀₀ > R₀₁ and R₁₁ > R₁₀        prompt side   R₀₀ > R₁₀ and R₁₁ > R₀₁

For a verifier, an accepted R₀₁ or R₁₀ is a false positive. Pairs with equal parsed answers (1/2 and
0.5) are not valid. This is a reconstruction from the abstract. The remedies that it names
(ConvexDA, RewardFusion) are not specified there.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rlvr_jax.analysis.arrays import fraction_of


class Consistency(NamedTuple):
    """Fractions of the valid pairs in which the inequalities hold; ties do not count."""

    response: float
    prompt: float
    both: float


def consistency(rewards: ArrayLike, valid: ArrayLike | None = None) -> Consistency:
    """Computes the consistency of a reward model or judge.

    Args:
      rewards: [P, 2, 2], reward of prompt i with answer j, for P pairs.
      valid: bool [P], pairs with different answers; None: all.
    Raises:
      ValueError: the shape is not [P, 2, 2].
    """
    r, valid = _checked("consistency", rewards, valid)
    r = r[valid]
    response = (r[:, 0, 0] > r[:, 0, 1]) & (r[:, 1, 1] > r[:, 1, 0])
    prompt = (r[:, 0, 0] > r[:, 1, 0]) & (r[:, 1, 1] > r[:, 0, 1])
    held = (np.sum(side) for side in (response, prompt, response & prompt))
    return Consistency(*(fraction_of(number, len(r)) for number in held))


def false_accepts(accepted: ArrayLike, valid: ArrayLike | None = None) -> float:
    """Fraction of the 2P swapped answers that a verifier accepts.

    Args:
      accepted: [P, 2, 2], 1 if the verifier accepts answer j for prompt i.
      valid: bool [P], pairs with different parsed answers; None: all.
    """
    accepted, valid = _checked("false_accepts", accepted, valid)
    swaps = accepted[valid][:, [0, 1], [1, 0]]
    return fraction_of(float(np.sum(swaps)), swaps.size)


def _checked(function: str, table: ArrayLike, valid: ArrayLike | None):
    table = np.asarray(table, float)
    if table.ndim != 3 or table.shape[1:] != (2, 2):
        raise ValueError(f"{function}: the table must be [pairs, 2, 2], got {table.shape}")
    return table, np.ones(len(table), bool) if valid is None else np.asarray(valid, bool)
