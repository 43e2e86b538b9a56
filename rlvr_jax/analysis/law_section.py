"""The section of the report about the entropy law, with one fit per run."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from rlvr_jax.analysis.entropy.entropy_law import fit_entropy_law
from rlvr_jax.analysis.page import rounded
from rlvr_jax.analysis.run_directory import Run

LAW_STEPS = 10  # steps per point
_FEWEST_POINTS = 4


def law_section(runs: Sequence[Run], labels: Sequence[str]) -> dict[str, Any] | None:
    """The chart of R against H with the fits, and their table; None if the runs are too short."""
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
        "intro": "Without entropy control, reward R is a function of entropy H: R = −a·eᴴ + b. The"
        " largest possible reward is b − a. Each run has its own fit. R² measures how well the law"
        " describes this run, and not whether two runs share a law or how a run continues. Runs"
        " with entropy control, and steps in which a format is learned, do not follow the law.",
        "wide": True,
        "charts": [chart],
        "table": {"head": ["run", "a", "b", "ceiling b − a", "R²", "points n"], "rows": rows},
    }


def _law_points(run: Run) -> list[tuple[float, float, str]]:
    """Means of H and R over blocks of consecutive steps; an incomplete last block is left out."""
    steps, *columns = run.common("entropy", "reward")
    blocks = [slice(i, i + LAW_STEPS) for i in range(0, len(steps) - LAW_STEPS + 1, LAW_STEPS)]
    return [
        (
            *(float(values[block].mean()) for values in columns),
            f"steps {steps[block][0]} to {steps[block][-1]}",
        )
        for block in blocks
    ]
