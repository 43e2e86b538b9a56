"""Writes the results of a comparison: Markdown, one PNG per curve, a self-contained HTML page."""

import html
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from rlvr_jax.analysis.colours import COLOURS
from rlvr_jax.analysis.compared import Comparison, View
from rlvr_jax.analysis.curves import held_out_ks, thinned
from rlvr_jax.analysis.page import markdown_table, rounded, table, whole_page
from rlvr_jax.analysis.seed_statistics import Interval, mean_interval, value_at

_STROKES = ("-", "--", ":")
_MOST_POINTS = 150
_BLOCK = 10  # least number of training steps per point
_CAVEAT = (
    "± is the half-width of a 95 % t-interval over seeds. A single seed, or equal seeds, have no"
    " interval. The interval does not cover the choice of held-out prompts. It is not corrected for"
    " the number of comparisons."
)
_ACTS = "experience/"
_COUNTED = ("sampled_tokens", "given_tokens", "scored_tokens", "trained_tokens")
_COSTS = "Costs"
_COSTS_NOTE = (
    "Means over seeds of the sums over all steps. Sampled tokens: all tokens from the sampler, also"
    " of discarded responses. Given tokens: inserted into responses. Scored tokens: read by parts"
    " of the experience. Trained tokens: on the mask. Seconds: of steps and evaluations."
)
_PROMPTS = "Uncertainty over held-out prompts"
_BOOTSTRAP = (
    "Last evaluation of the finished runs: mean and 95 % bootstrap interval over held-out prompts"
    " and seeds, both resampled with replacement. With one seed only the prompts are resampled."
)


def write_comparison(out: Path, comparison: Comparison) -> None:
    """Writes comparison.md, comparison.html and the PNGs into the folder `out`."""
    out.mkdir(parents=True, exist_ok=True)
    charts = _charts(comparison)
    for chart in charts:
        _draw(chart, list(comparison.runs), out / f"{chart['file']}.png")
    (out / "comparison.md").write_text(_markdown(comparison, charts), "utf-8")
    (out / "comparison.html").write_text(_html(comparison, charts), "utf-8")


def _charts(comparison: Comparison) -> list[dict[str, Any]]:
    """Chart specifications: seeds as thin lines, the mean as a thick line, its interval shaded."""
    runs = [run for seeds in comparison.runs.values() for run in seeds.values()]
    present = dict.fromkeys(name for run in runs for name in run.names())
    wanted = [("reward", "Reward", "mean per response, training")]
    wanted += [(f"held_out/pass@{k}", f"Held-out pass@{k}", "fraction") for k in held_out_ks(runs)]
    wanted += [
        ("entropy", "Token entropy", "nats, training"),
        ("chosen_fraction", "Chosen by the method", "fraction of tokens"),
    ]
    for name in present:
        if match := re.fullmatch(r"held_out/(?:(.+)/)?info/(.+)", name):
            kind = f", {match[1]} prompts" if match[1] else ""
            title = match[2].replace("_", " ").capitalize() + kind
            wanted.append((name, title, "mean per held-out response"))
    charts = [_chart(comparison, *entry) for entry in wanted if entry[0] in present]
    # Two names that differ only in punctuation would write one file.
    taken: set[str] = set()
    for chart in charts:
        first, number = chart["file"], 1
        while chart["file"] in taken:
            number += 1
            chart["file"] = f"{first}_{number}"
        taken.add(chart["file"])
    return charts


def _chart(comparison: Comparison, metric: str, title: str, unit: str) -> dict[str, Any]:
    held_out = metric.startswith("held_out/")
    every = {run.path: run.series(metric) for s in comparison.runs.values() for run in s.values()}
    block = 1 if held_out else _block(max(len(steps) for steps, _ in every.values()))
    series, counts = [], []
    for number, (method, seeds) in enumerate(comparison.runs.items()):
        curves = {}
        for seed, run in seeds.items():
            steps, values = every[run.path]
            points = np.stack([comparison.x[run.path][steps], values], axis=1)
            if len(points) >= block:
                curves[seed] = _block_means(points, block)
        counts.append(len(curves))
        base = {"run": number, "window": 1}
        for seed, points in curves.items():
            points = _rounded_points(thinned(points, _MOST_POINTS))
            series.append(
                base | {"label": f"{method}, seed {seed}", "kind": "seed", "points": points}
            )
        mean = thinned(_mean_curve(list(curves.values())), _MOST_POINTS)
        entry = {"label": method, "kind": "mean", "points": _rounded_points(mean[:, :2])}
        if len(curves) > 1:
            entry["band"] = _rounded_points(mean[:, [0, 2, 3]])
        series.append(base | entry)
    number_of_seeds = " and ".join(map(str, sorted(set(counts))))
    note = f"n = {number_of_seeds} seeds"
    steps_note = f"means of {block} steps" if block > 1 else "every step"
    note += f", {comparison.note if held_out else steps_note}"
    return {
        "file": re.sub(r"[^a-z0-9]+", "_", metric.replace("@", "_at_").lower()).strip("_"),
        "title": title,
        "unit": unit,
        "note": note,
        "x": {"label": comparison.x_name},
        "y": [0, 1] if "pass@" in metric else None,
        "zero": not held_out and metric != "reward",
        "variants": [],
        "series": series,
    }


def _rounded_points(points: np.ndarray) -> list:
    """Rows for the page: x as integers, other values with 4 digits."""
    return [[round(float(row[0])), *rounded(row[1:])] for row in points]


def _block(steps: int) -> int:
    """Training steps per point: 1 if the longest run has fewer than 30, else 10 or more."""
    return max(_BLOCK, math.ceil(steps / _MOST_POINTS)) if steps >= 3 * _BLOCK else 1


def _block_means(points: np.ndarray, block: int) -> np.ndarray:
    """Means of `block` consecutive rows; an incomplete last block is left out."""
    whole = len(points) // block
    return points[: whole * block].reshape(whole, block, 2).mean(1)


def _mean_curve(curves: Sequence[np.ndarray]) -> np.ndarray:
    """Rows [x, mean, low, high], within the range of x that all seeds cover.

    A seed without a point at x is interpolated. Seeds have different x at one step if a method
    drops rollouts.
    """
    every_x = np.unique(np.concatenate([curve[:, 0] for curve in curves])) if curves else []
    rows = []
    for x in every_x:
        values = [value_at(*curve.T, x) for curve in curves]
        if np.isnan(values).any():
            continue
        found = mean_interval(values)
        width = found.half_width if np.isfinite(found.half_width) else 0.0
        rows.append([x, found.mean, found.mean - width, found.mean + width])
    return np.array(rows).reshape(-1, 4)


def _draw(chart: dict[str, Any], methods: Sequence[str], path: Path) -> None:
    """Writes a chart; methods with one colour differ by their strokes."""
    figure = Figure(figsize=(7.5, 3.8), layout="constrained")
    axes = figure.add_subplot()
    for line in chart["series"]:
        if not line["points"]:
            continue
        x, y = np.array([p[:2] for p in line["points"]], float).T
        stroke, number = divmod(line["run"], len(COLOURS))
        colour = COLOURS[number]
        if line["kind"] == "seed":
            axes.plot(x, y, color=colour, linewidth=0.8, alpha=0.35)
            continue
        style = {"color": colour, "linestyle": _STROKES[stroke % len(_STROKES)]}
        axes.plot(x, y, **style, linewidth=2.2, label=methods[line["run"]])
        if (band := line.get("band")) and len(methods) <= len(COLOURS):
            at, low, high = np.array(band, float).T
            axes.fill_between(at, low, high, color=colour, alpha=0.15, linewidth=0)
    axes.set_title(f"{chart['title']} ({chart['note']})", loc="left", fontsize=9)
    axes.set_xlabel(chart["x"]["label"])
    axes.set_ylabel(chart["unit"])
    if chart["y"]:
        axes.set_ylim(*chart["y"])
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.25)
    figure.legend(loc="outside right upper", frameon=False, fontsize=8)
    figure.savefig(path, dpi=130)


def _mean_table(comparison: Comparison, view: View) -> tuple[list[str], list[list[str]]]:
    """One row per method, then one row per difference from the baseline; one column per metric."""
    methods = list(comparison.runs)
    head = ["", *(_short(metric) for metric in view.values)]
    rows = []
    for method in methods:
        rows.append(
            [method, *(_counted(view.mean(m, method), method, comparison) for m in view.values)]
        )
    for method in methods:
        if method != comparison.baseline:
            gaps = [view.difference(m, method, comparison.baseline) for m in view.values]
            rows.append([f"{method} − {comparison.baseline}", *(_pairs(gap) for gap in gaps)])
    return head, rows


def _counted(interval: Interval, method: str, comparison: Comparison) -> str:
    found, all_seeds = len(interval.values), len(comparison.runs[method])
    return f"{interval} ({found}{'' if found == all_seeds else f' of {all_seeds}'})"


def _pairs(interval: Interval) -> str:
    return f"{interval.signed} ({len(interval.values)} paired)"


def _prompt_table(comparison: Comparison) -> tuple[list[str], list[list[str]]]:
    """One row per method and difference, one column per metric."""
    found = comparison.prompts
    rows = {name: [name] for each in found.values() for name in each}
    for each in found.values():
        for name, interval in each.items():
            rows[name].append(str(interval))
    first = next(iter(next(iter(found.values())).values()))
    return [f"{first.prompts} prompts", *map(_short, found)], list(rows.values())


def _cost_table(comparison: Comparison) -> tuple[list[str], list[list[str]]]:
    """One row per method: mean costs over its seeds, and how often its parts acted."""
    head = ["", "steps", *_COUNTED, "seconds", "parts of the experience, means over steps"]
    rows = []
    for method, seeds in comparison.runs.items():
        runs = list(seeds.values())
        numbers = [np.mean([max(row["step"] for row in run.metrics) for run in runs])]
        for name in _COUNTED:
            numbers.append(np.mean([run.series(name)[1].sum() for run in runs]))
        numbers.append(np.mean([sum(row.get("wall_s", 0) for row in run.timings) for run in runs]))
        cells = [f"{number:,.0f}" if number else "–" for number in numbers]
        acted = dict.fromkeys(n for run in runs for n in run.names() if n.startswith(_ACTS))
        means = {n: np.mean([run.series(n)[1].mean() for run in runs]) for n in acted}
        listed = ", ".join(f"{n.removeprefix(_ACTS)} {mean:.3g}" for n, mean in means.items())
        rows.append([method, *cells, listed or "–"])
    return head, rows


def _seed_table(comparison: Comparison, view: View) -> tuple[list[str], list[list[str]]]:
    head = ["method", "seed", *(_short(metric) for metric in view.values)]
    rows = []
    for method, seeds in comparison.runs.items():
        for seed in seeds:
            numbers = [view.values[m][method][seed] for m in view.values]
            cells = ["–" if np.isnan(v) else f"{v:.3f}" for v in numbers]
            rows.append([method, str(seed), *cells])
    return head, rows


def _short(metric: str) -> str:
    return metric.removeprefix("held_out/").replace("info/", "").replace("/", " ").replace("_", " ")


def _sections(comparison: Comparison) -> list[tuple[str, str, dict[str, tuple]]]:
    """Heading, introduction and tables of the sections of both pages."""
    held_out = f"Held-out: {comparison.note}. In parentheses: number of seeds."
    found = []
    for view in (comparison.equal_rollouts, comparison.equal_pass):
        if view is not None:
            heading = view.where[0].upper() + view.where[1:]
            means, seeds = _mean_table(comparison, view), _seed_table(comparison, view)
            found.append((heading, held_out, {"": means, "Every seed": seeds}))
    costs = _cost_table(comparison)
    if any(cell != "–" for row in costs[1] for cell in row[2:]):  # runs of earlier versions
        found.append((_COSTS, _COSTS_NOTE, {"": costs}))
    if comparison.prompts:
        found.append((_PROMPTS, _BOOTSTRAP, {"": _prompt_table(comparison)}))
    return found


def _markdown(comparison: Comparison, charts: Sequence[dict[str, Any]]) -> str:
    lines = ["# Comparison", "", *(f"- {s}" for s in comparison.sentences), "", _CAVEAT, ""]
    for heading, intro, tables in _sections(comparison):
        lines += [f"## {heading}", "", intro, ""]
        for head, rows in tables.values():
            lines += [*markdown_table(head, rows), ""]
    lines += ["## Curves", ""]
    lines += [f"![{chart['title']}]({chart['file']}.png)" for chart in charts]
    return "\n".join(lines) + "\n"


def _html(comparison: Comparison, charts: Sequence[dict[str, Any]]) -> str:
    blocks = []
    for heading, intro, tables in _sections(comparison):
        blocks.append(f"<section><h2>{html.escape(heading)}</h2>")
        blocks.append(f'<p class="intro">{intro}</p>')
        for title, (head, rows) in tables.items():
            blocks.append((title and f"<h3>{title}</h3>") + table(head, rows))
        blocks.append("</section>")
    intro = "Every seed thin, the mean thick, its 95 % t-interval shaded."
    data = {
        "runs": [{"label": method} for method in comparison.runs],
        "sections": [{"title": "Curves", "intro": intro, "wide": True, "charts": charts}],
    }
    title = f"Comparison: {', '.join(comparison.runs)}"
    items = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in comparison.sentences)
    return whole_page(
        "comparison_page.html",
        ["charts.js", "comparison.js"],
        title,
        data,
        lead=html.escape(_CAVEAT),
        sentences=items,
        tables="\n".join(blocks),
    )
