"""The report's section on the entropy law: one fit per run, on that run's own curve."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from rlvr_jax.analysis.entropy.entropy_law import fit_entropy_law
from rlvr_jax.analysis.page import rounded
from rlvr_jax.analysis.run_directory import Run

LAW_STEPS = 10  # steps per point
_FEWEST_POINTS = 4


def law_section(runs: Sequence[Run], labels: Sequence[str]) -> dict[str, Any] | None:
    """Gives the chart of R against H, fitted, and the table of fits; None if runs are too short."""
    series, rows = [], []
    for number, (run, label) in enumerate(zip(runs, labels, strict=True)):
        blocks = _law_points(run)
        if len(blocks) < _FEWEST_POINTS:
            continue
        entropy, reward = np.array([block[:2] for block in blocks]).T
        points = [[*rounded([h, r]), steps] for h, r, steps in blocks]
        base = {"run": number, "label": label, "window": 1}
        series.append(base | {"kind": "dots", "points": points})
        try:
            law = fit_entropy_law(entropy, reward)
        except ValueError:
            rows.append([label, "no fit: the entropy does not vary", "", "", "", len(blocks)])
            continue
        grid = np.linspace(entropy.min(), entropy.max(), 40)
        curve = np.stack([grid, law.predict(grid)], axis=1)
        series.append(base | {"kind": "curve", "points": rounded(curve)})
        numbers = [law.a, law.b, law.ceiling, law.r_squared]
        cells = ["–" if np.isnan(v) else f"{v:.3f}" for v in numbers]
        rows.append([label, *cells, law.num_points])
    if not series:
        return None
    chart = {
        "title": "Reward against entropy",
        "unit": "mean reward",
        "note": f"one point per {LAW_STEPS} steps; line: R = −a·eᴴ + b, least squares on eᴴ",
        "x": {"label": "token entropy H, nats"},
        "variants": [],
        "series": series,
    }
    return {
        "title": "Entropy law",
        "intro": "Without entropy control, reward is bought with entropy along R = −a·eᴴ + b, and"
        " b − a is all there is to gain. Each run is fitted to its own curve, so R² says how well"
        " the form describes that run; it does not say that two runs share a law, that the run"
        " would have gone on along it, or why. A run with entropy control may leave the curve,"
        " and steps in which a format is learned never lie on it.",
        "wide": True,
        "charts": [chart],
        "table": {"head": ["run", "a", "b", "ceiling b − a", "R²", "points n"], "rows": rows},
    }


def _law_points(run: Run) -> list[tuple[float, float, str]]:
    """Means of H and R over consecutive steps that have both; a shorter rest is left out."""
    steps, *columns = run.common("entropy", "reward")
    blocks = [slice(i, i + LAW_STEPS) for i in range(0, len(steps) - LAW_STEPS + 1, LAW_STEPS)]
    return [
        (
            *(float(values[block].mean()) for values in columns),
            f"steps {steps[block][0]} to {steps[block][-1]}",
        )
        for block in blocks
    ]
