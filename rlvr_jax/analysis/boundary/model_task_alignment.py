"""Model and task: the base's ability on the task, and the gain of each recipe.

Wu et al. 2025, "Mirage or Method? How Model-Task Alignment Induces Divergent RL Conclusions",
https://arxiv.org/abs/2508.21188. Random rewards, one example or only negative samples improve a
policy if the pass@k of the base is high. Correct rewards always do. A cell is a model on a task.
pass@16 is unbiased, on the training prompt and at the training temperature. The thresholds are
ours. Correlations over a few cells are weak evidence: show the table.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

_ALIGNED, _UNALIGNED = 0.7, 0.3
_FEWEST_CELLS = 3

Alignment = Literal["aligned", "unaligned", "undecided"]


class TrickGain(NamedTuple):
    """Gains of one recipe over the base.

    Fields:
      gains: by cell, in the order given.
      correlation: Pearson, of gain and pass@16 over cells; None below 3 cells or where one of the
        two does not vary.
      aligned, unaligned: mean gain in such cells; None if there are none.
    """

    gains: tuple[float, ...]
    correlation: float | None
    aligned: float | None
    unaligned: float | None


def alignment(pass_at_16: float) -> Alignment:
    """ "aligned" from pass@16 = 0.7 on, "unaligned" up to 0.3, between them "undecided"."""
    if pass_at_16 >= _ALIGNED:
        return "aligned"
    return "unaligned" if pass_at_16 <= _UNALIGNED else "undecided"


def gains_by_alignment(
    pass_at_16: ArrayLike, gains: Mapping[str, Sequence[float]]
) -> dict[str, TrickGain]:
    """Sets the gains of every recipe against how well the base did.

    Args:
      pass_at_16: [cells], of the base before training.
      gains: by recipe, the score after training less the base's, cell by cell.
    """
    reached = np.asarray(pass_at_16, float)
    kinds = np.array([alignment(value) for value in reached])
    found = {}
    for name, values in gains.items():
        gain = np.asarray(values, float)
        if gain.shape != reached.shape:
            raise ValueError(
                f"gains_by_alignment: gains of {name} must be {len(reached)}, one per cell,"
                f" got {gain.size}"
            )
        varies = len(gain) >= _FEWEST_CELLS and np.ptp(gain) > 0 and np.ptp(reached) > 0
        found[name] = TrickGain(
            tuple(gain.tolist()),
            float(np.corrcoef(gain, reached)[0, 1]) if varies else None,
            _mean(gain[kinds == "aligned"]),
            _mean(gain[kinds == "unaligned"]),
        )
    return found


def _mean(values: np.ndarray) -> float | None:
    return float(values.mean()) if values.size else None
