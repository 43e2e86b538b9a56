"""What is made of how players did in a tournament: scores, places, rewards, differences.

A round is a sequence of (first, second, score of the first, score of the second). A pair whose
scores are NaN moves nobody up or down.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

__all__ = []

Match = tuple[int, int, float, float]
Rounds = Sequence[Sequence[Match]]
Scores = Float[np.ndarray, "N"]


def scored_matches(rounds):
    for matches in rounds:
        for match in matches:
            if not np.isnan(match[2:]).any():
                yield match
