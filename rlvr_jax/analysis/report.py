"""Writes one self-contained HTML page about one run or several runs.

    python -m rlvr_jax.analysis.report RUN [RUN …] --out report.html

The page needs no server and no network, and has less than 3 MB. Long curves are shortened to means
of consecutive steps, and only samples that fit are shown. Training writes the page of a growing run
at every evaluation, and an open page then reloads itself.
"""

import argparse
import html
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rlvr_jax.analysis.curves import held_out_ks, held_out_note, sections
from rlvr_jax.analysis.page import fill, replace_file, rounded, table, whole_page
from rlvr_jax.analysis.run_directory import Run, flatten, load_run
from rlvr_jax.analysis.samples import number_or, shown_samples, stored_samples
from rlvr_jax.arguments import as_typed

LARGEST_PAGE = 3_000_000  # bytes
_SAMPLE_TOKENS = 30_000  # tokens on the page, over all runs and steps
_FIRST_SETTINGS = ("loss_terms", "method", "task", "seed")
_RELOAD_SECONDS = 30
_SAMPLES_INTRO = (
    "Stored responses of the first and last steps, grouped by prompt, best first. The colour of a"
    " token is the value of the selected column, on one scale for the whole page. Outlined: the"
    " method treats the token differently. Underlined: clipped. Grey: not sampled by the policy. A"
    " dashed line separates turns. Point at a token to see its values."
)
# (tokens of samples, factor of the points of a curve): tried in this order until a page fits.
_SIZES = ((_SAMPLE_TOKENS, 1.0), (_SAMPLE_TOKENS // 3, 1.0), (0, 1.0), (0, 0.25), (0, 0.05))


def write_report(
    path: str | Path,
    runs: Sequence[str | Path],
    title: str | None = None,
    live: bool = False,
) -> Path:
    """Writes the report of one or more run directories, finished or growing.

    A reader sees the old page or the new page, never an incomplete one.

    Args:
      path: the HTML file to write; its folder is made.
      runs: run directories, at least one, in the order of their curves.
      title: heading; default: the task and the methods.
      live: whether the run continues. The page then reloads itself, except while a reader uses it.
    Returns:
      The path written.
    """
    if not runs:
        raise ValueError("write_report: runs must name a run directory, got none")
    loaded = [load_run(run) for run in runs]
    stored = stored_samples(loaded)
    for tokens, points in _SIZES:
        page = _page(loaded, title, stored, tokens, points, live).encode("utf-8")
        if len(page) < LARGEST_PAGE:
            path = Path(path)
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, page)
            return path
    raise ValueError(
        f"write_report: runs must fit on a page of {LARGEST_PAGE} bytes, got {len(runs)} runs that"
        f" need {len(page)}"
    )


def labels_of(runs: Sequence[Run]) -> list[str]:
    """Names of the runs: the method, with seed or folder if methods are equal."""
    names = [run.method for run in runs]
    for more in (
        [f", seed {run.seed}" for run in runs],
        [f" ({run.path.name})" for run in runs],
        [f" #{number}" for number in range(1, len(runs) + 1)],
    ):
        if len(set(names)) < len(names):
            names = [name + own for name, own in zip(names, more, strict=True)]
    return names


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Writes one HTML page about one or several runs.")
    parser.add_argument("runs", nargs="+", metavar="RUN", help="a run directory")
    parser.add_argument("--out", default="report.html", help="the file to write")
    parser.add_argument(
        "--title", default=None, help="heading of the page (default: the task and the methods)"
    )
    options = parser.parse_args(arguments)
    try:
        with as_typed("RUN", "load_run: path"):
            print(write_report(options.out, options.runs, options.title))
    except ValueError as error:
        sys.exit(f"error: {error}")


def _page(
    runs: Sequence[Run],
    title: str | None,
    stored: Sequence,
    sample_tokens: int,
    points: float,
    live: bool,
) -> str:
    labels = labels_of(runs)
    tasks = dict.fromkeys(str(run.setting("task", "")) for run in runs)
    heading = title or ": ".join(
        filter(None, [", ".join(filter(None, tasks)), " and ".join(labels)])
    )
    samples, bounds, start = shown_samples(stored, sample_tokens)
    data = {
        "runs": [{"label": label} for label in labels],
        "cards": _cards(runs),
        "sections": sections(runs, labels, points),
        "samples": samples,
        "bounds": bounds,
        "start": start,
        "reload_seconds": _RELOAD_SECONDS if live else None,
    }
    settings, intro = _settings(runs, labels)
    return whole_page(
        "report_page.html",
        ["charts.js", "tokens.js", "report.js"],
        heading,
        data,
        lead=html.escape(_lead(runs, labels, live)),
        settings=settings,
        settings_intro=intro,
        timings=_timings(runs, labels),
        samples=fill("token_view.html", intro=_SAMPLES_INTRO),
    )


def _lead(runs: Sequence[Run], labels: Sequence[str], live: bool) -> str:
    parts = []
    for run, label in zip(runs, labels, strict=True):
        seed = "" if run.seed is None or "seed" in label else f", seed {run.seed}"
        ended = bool(run.summary) or run.has_ended
        parts.append(f"{label}{seed}: {run.last_step} steps{'' if ended else ', not finished'}")
    if live:
        parts.append(f"reloads every {_RELOAD_SECONDS} s")
    return " · ".join(parts)


def _cards(runs: Sequence[Run]) -> list[dict[str, Any]]:
    metrics = [
        (f"pass@{k}", f"held_out/pass@{k}", f"held-out, {held_out_note(runs)}")
        for k in held_out_ks(runs)
    ]
    metrics.append(("Entropy", "entropy", "nats per token, in training"))
    metrics.append(("Truncated", "truncated_fraction", "fraction of responses, in training"))
    cards = []
    for title, metric, note in metrics:
        rows = []
        for number, run in enumerate(runs):
            # The page rounds to 3 places, so 4 digits would round twice (0.43353 to 0.433).
            values = rounded(run.series(metric)[1], digits=7)
            first, last = (values[0], values[-1]) if values else (None, None)
            change = None if first is None else rounded(last - first, digits=7)
            rows.append({"run": number, "first": first, "last": last, "change": change})
        cards.append({"title": title, "note": note, "rows": rows})
    return cards


def _settings(runs: Sequence[Run], labels: Sequence[str]) -> tuple[str, str]:
    flat = [flatten(_all_settings(run.config)) for run in runs]
    names = list(dict.fromkeys(name for settings in flat for name in settings))
    rows = {name: [_setting_text(settings.get(name, "–")) for settings in flat] for name in names}

    def order(name):
        leaf = name.rsplit(".", 1)[-1]
        first = _FIRST_SETTINGS.index(leaf) if leaf in _FIRST_SETTINGS else len(_FIRST_SETTINGS)
        return first, len(set(rows[name])) == 1

    names.sort(key=order)
    marked = [i for i, name in enumerate(names) if len(set(rows[name])) > 1]
    intro = "Settings of the run, with resolved values for settings that were not given. The terms"
    intro += " of the loss come first."
    if len(runs) > 1:
        intro += " Coloured rows differ between the runs."
    lines = [[name, *rows[name]] for name in names]
    return table(["setting", *labels], lines, marked), intro


def _all_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """All settings, each once. A resolved value replaces a missing value, or a 0 that means a
    rule."""
    own = {n: value for n, value in config.items() if n not in ("settings", "resolved")}
    return own | config.get("settings", {}) | own | config.get("resolved", {})


def _setting_text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return " + ".join(str(v) for v in value) or "none"
    return str(value)


def _timings(runs: Sequence[Run], labels: Sequence[str]) -> str:
    names = ("sample_s", "verify_s", "update_s", "evaluate_s", "tokens_per_s")
    rows = []
    for run, label in zip(runs, labels, strict=True):
        medians = [np.median(_positive(run.timings, name) or np.nan) for name in names]
        wall = _positive(run.timings, "wall_s")
        # wall_s of a step contains its evaluation; the evaluation before the first step is separate
        before = _positive([row for row in run.timings if row["step"] == 0], "evaluate_s")
        whole = sum(wall + before) if wall else np.nan
        rows.append([label, *map(_figures, [*medians, whole])])
    heads = (name.replace("_per_", " / ").replace("_s", " s") for name in names)
    return table(["run", *heads, "wall s, all steps"], rows)


def _positive(timings: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    """The values of a column, without missing values and zeros."""
    return [v for row in timings if (v := number_or(row.get(name), 0.0)) > 0]


def _figures(value: float) -> str:
    """The number with three digits; an integer from 100 on; a dash for NaN."""
    if np.isnan(value):
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    main()
