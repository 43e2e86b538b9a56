"""Draws the picture of the README from the lines of the leaderboard.

python docs/entropy_figure.py     # writes docs/images/entropy_collapse.svg
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from rlvr_jax.analysis.colours import COLOURS
from rlvr_jax.analysis.run_directory import read_json_lines

DOCS = Path(__file__).parent
CURVES = DOCS / "results" / "leaderboard" / "curves.jsonl"
PICTURE = DOCS / "images" / "entropy_collapse.svg"
METHODS = {"grpo": ("GRPO", COLOURS[0]), "clip_cov": ("Clip-Cov", COLOURS[1])}
PANELS = {"entropy": "entropy, nats per token", "held_out/pass@32": "held-out pass@32"}
SEEDS = range(5)


def curves() -> dict[str, list[dict]]:
    """The rows of each method on the board of objectives, seeds 0 to 4."""
    rows = [row for row in read_json_lines(CURVES) if row["board"] == "objectives"]
    return {
        method: [row for row in rows if row["entry"] == method and row["seed"] in SEEDS]
        for method in METHODS
    }


def draw() -> None:
    """Draws every seed thin and the mean thick, against the sampled tokens."""
    plt.rcParams |= {"svg.hashsalt": "entropy", "font.size": 11, "svg.fonttype": "path"}
    figure, panels = plt.subplots(1, 2, figsize=(9, 2.9), layout="constrained")
    for panel, (name, title) in zip(panels, PANELS.items(), strict=True):
        for method, rows in curves().items():
            label, colour = METHODS[method]
            tokens = np.linspace(0, min(row["sampled_tokens"][-1] for row in rows), 50)
            values = [np.interp(tokens, row["sampled_tokens"], row[name]) for row in rows]
            for row in rows:
                panel.plot(
                    np.array(row["sampled_tokens"]) / 1e6, row[name], colour, lw=0.7, alpha=0.5
                )
            mean = np.mean(values, axis=0)
            panel.plot(tokens / 1e6, mean, colour, lw=2.5)
            panel.annotate(
                label,
                (tokens[-1] / 1e6, mean[-1]),
                xytext=(8, -4),
                textcoords="offset points",
                color=colour,
                weight="bold",
            )
        panel.set(title=title, xlabel="sampled tokens, millions", ylim=0, xlim=(0, 1.95))
        panel.spines[["top", "right"]].set_visible(False)
    figure.savefig(PICTURE, metadata={"Date": None})


if __name__ == "__main__":
    draw()
