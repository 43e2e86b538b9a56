"""Pairs of sibling steps, of which a model learns which is better."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

__all__ = ["StepPairs", "pair_loss", "sibling_pairs"]

StepPairs = Sequence[tuple[int, int, float]]
"""(better step, worse step, weight) each."""


def sibling_pairs(
    quality: Float[Array, "N"],
    solved: Bool[Array, "N"],
    top: int = 2,
    lonely: int = 4,
    margin: float = 0.5,
) -> list[tuple[int, int, float]]:
    """Pairs among the children of one node: its best solved steps against its worst failed ones.

    Of the steps through which something was solved the `top` of highest Q are taken, of those
    through which something failed the `top` of lowest Q, `lonely` where the other side has only
    one. A pair is kept if Q differs by at least the margin; its weight is 1 / (n⁺ n⁻) with the
    numbers that were taken, before the margin. So a node counts as one, however many pairs it has.

    Args:
      quality: Q of the steps.
      solved: the step has a solved path; the others have failed.
      top, lonely: as above.
      margin: 0 keeps all pairs of different Q.
    Source: rStar-Math, https://github.com/microsoft/rStar (`train/sample_rm_data.py`).
    """
    quality = np.asarray(quality, float)
    right, wrong = np.flatnonzero(solved), np.flatnonzero(~np.asarray(solved, bool))
    if not (len(right) and len(wrong)):
        return []
    best = right[np.argsort(-quality[right], kind="stable")]
    worst = wrong[np.argsort(quality[wrong], kind="stable")]
    best = best[: lonely if len(wrong) == 1 else top]
    worst = worst[: lonely if len(right) == 1 else top]
    weight = 1 / (len(best) * len(worst))
    return [
        (int(one), int(other), weight)
        for one in best
        for other in worst
        if quality[one] != quality[other] and quality[one] - quality[other] >= margin
    ]


def pair_loss(
    score: Float[Array, "N"],
    better: Int[Array, "K"],
    worse: Int[Array, "K"],
    weight: Float[Array, "K"],
) -> Float[Array, ""]:
    """Σ weight · -log σ(s⁺ - s⁻).

    Args:
      score: s of each step.
      better, worse: the steps of each pair.
    """
    return jnp.sum(weight * -jax.nn.log_sigmoid(score[better] - score[worse]))
