"""Turns the metrics of runs into chart specifications for the report page."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from rlvr_jax.analysis.law_section import LAW_STEPS, law_section
from rlvr_jax.analysis.metrics import unit_of
from rlvr_jax.analysis.page import rounded
from rlvr_jax.analysis.run_directory import Run

_MOST_POINTS = 400
_FEWEST_POINTS = 10
_SMOOTHED = 5 * LAW_STEPS  # curves with at least so many steps have a moving mean


class _Curve(NamedTuple):
    """One chart: metrics with the names of their lines, an optional band, and bounds of the
    axis."""

    title: str
    note: str
    metrics: Mapping[str, str]
    band: tuple[str, str] | None = None
    bounds: tuple[float, float] | None = None
    zero: bool = False

    @property
    def unit(self) -> str:
        return unit_of(next(iter(self.metrics)))


def _one(title: str, note: str, metric: str, **options) -> _Curve:
    return _Curve(title, note, {metric: ""}, **options)


_QUANTILES = ("entropy/p10", "entropy/p90")
_TRAINING = (
    _one("Reward", "of the trained responses", "reward"),
    _one("Outcome", "by the verifier", "outcome"),
    _one(
        "Response length",
        "mean, band p10 to p90",
        "length",
        band=("length/p10", "length/p90"),
    ),
    _one("Truncated", "", "truncated_fraction", zero=True),
    _Curve(
        "Verifier",
        "responses that",
        {"verifier_timeouts": "timed out", "verifier_no_verdict": "were not graded"},
        zero=True,
    ),
)
_ENTROPY = (
    _one("Token entropy", "mean, band p10 to p90", "entropy", band=_QUANTILES, zero=True),
    _Curve(
        "Entropy by outcome",
        "mean over tokens of responses that are",
        {"entropy/correct": "correct", "entropy/incorrect": "incorrect"},
        zero=True,
    ),
    _one("Median entropy", "p50 over tokens", "entropy/p50", zero=True),
    _one("Covariance", "of advantage and log-prob", "covariance"),
    _one("Tokens near zero entropy", "", "low_entropy_fraction"),
    _one("Held-out entropy", "mean over tokens", "held_out/entropy", zero=True),
    _one("KL to the first policy", "mean log-ratio (k1)", "held_out/kl_to_start/k1"),
)
_METHOD = (
    _one("Chosen by the method", "whole batch", "chosen_fraction", zero=True),
    _one("Clipped", "the ratio clip decides", "clipped_fraction", zero=True),
    _one(
        "Ratio",
        "mean, band min to max",
        "ratio/mean",
        band=("ratio/min", "ratio/max"),
    ),
    _one("Effective sample size", "of ratios", "ratio/effective_sample_size"),
    _Curve(
        "Sampler and scorer",
        "extremes over tokens, same weights",
        {"sampler_ratio/min": "least", "sampler_ratio/max": "largest"},
    ),
    _one("Gradient norm", "before clipping", "gradient_norm", zero=True),
    _one("Loss", "as minimised", "loss"),
)
_QUARTERS = {1: "first quarter", 2: "second", 3: "third", 4: "last"}


def _by_quarter(title: str, metric: str, of: str, zero: bool = True) -> _Curve:
    note = {"position": "by place in the budget", "length": "by length of the response"}[of]
    names = {f"engine/{metric}_{of}/{q}": name for q, name in _QUARTERS.items()}
    return _Curve(title, note, names, zero=zero)


_ENGINE = (
    _Curve(
        "Gap of the probe",
        "fixed sequences after a sync",
        {
            "engine/gap_max": "largest",
            "engine/gap_mean": "mean",
            "engine/reported_gap_max": "largest of reported log-probs",
        },
        zero=True,
    ),
    _Curve(
        "Gap of sampled tokens",
        "log p of engine and trainer",
        {"engine/gap": "mean", "engine/gap_p99": "99 % quantile"},
        zero=True,
    ),
    _Curve(
        "Divergence from the engine",
        "estimators of KL(engine‖trainer)",
        {"engine/k1": "k1", "engine/k3": "k3"},
    ),
    *(
        _by_quarter(title, metric, of, zero=metric != "k1")
        for of in ("position", "length")
        for title, metric in (
            ("Mean gap", "gap"),
            ("Tail of the gap (99 %)", "gap_p99"),
            ("k1", "k1"),
            ("k3", "k3"),
        )
    ),
)
_PASS = re.compile(r"held_out/(?:(?P<kind>.+)/)?pass@(?P<k>\d+)")
_INFO = re.compile(r"(?P<held_out>held_out/)?(?:(?P<kind>.+)/)?info/(?P<name>.+)")


def sections(
    runs: Sequence[Run], labels: Sequence[str], points: float = 1.0
) -> list[dict[str, Any]]:
    """Returns the sections of the report: title, introduction, charts, and sometimes a table.

    Constant training metrics are in a separate folded table.

    Args:
      points: factor of the number of points of a curve; below 1 if the page is too large.
    """
    names = dict.fromkeys(name for run in runs for name in run.names())
    used = {"held_out/n"}
    still: list[list[str]] = []

    most = _most_points(runs, points)
    reading = _reading(runs, most)

    def charts(curves: Iterable[_Curve]) -> list[dict[str, Any]]:
        found = []
        for curve in curves:
            used.update(curve.metrics, curve.band or ())
            if not curve.metrics.keys() & names.keys():
                continue
            if _never_moves(runs, curve):
                still.extend(_still_rows(runs, curve))
            else:
                found.append(_chart(runs, labels, curve, most))
        return found

    result = [
        {
            "title": "Held-out answers",
            "intro": "pass@k: the probability that at least one of k samples is correct. It is an"
            " unbiased estimate from n samples per prompt, and a mean over held-out prompts.",
            "charts": charts(_pass_charts(runs, names)) + _pass_against_k(runs, labels),
        },
        {
            "title": "Training answers",
            "intro": reading,
            "charts": charts([*_TRAINING, *_kind_charts(names), *_info_charts(names)]),
        },
        {
            "title": "Entropy",
            "intro": "Of the policy over the whole vocabulary, at the sampling temperature. "
            + reading,
            "charts": charts(_ENTROPY),
        },
        law_section(runs, labels),
        {
            "title": "The update",
            "intro": "Tokens that the method treats differently, clipped tokens, update size. "
            + reading,
            "charts": charts(_METHOD),
        },
        {
            "title": "Engine and trainer",
            "intro": "Distance in log p of the engine that sampled and the policy that is trained."
            " It is rounding, with no trend, if both have the same weights. " + reading,
            "charts": charts(_ENGINE),
        },
        {
            "title": "Further numbers",
            "intro": "All other metrics of the run.",
            "charts": charts([_one(n, "", n) for n in names if n not in used]),
        },
    ]
    if still:
        result.append(
            {
                "title": "Constant metrics",
                "intro": "Metrics with one value in all steps.",
                "charts": [],
                "table": {"head": ["number", *labels], "rows": still},
                "folded": True,
            }
        )
    return [s for s in result if s and (s["charts"] or s.get("folded"))]


def held_out_ks(runs: Sequence[Run]) -> list[int]:
    """All k with a held-out pass@k, ascending."""
    matches = (_PASS.fullmatch(name) for run in runs for name in run.names())
    return sorted({int(m["k"]) for m in matches if m and not m["kind"]})


def held_out_note(runs: Sequence[Run]) -> str:
    """The number of samples per prompt of the held-out metrics, as text."""
    counts = sorted({int(v) for run in runs for v in run.series("held_out/n")[1]})
    return f"n = {' or '.join(map(str, counts))} samples per prompt" if counts else "n not written"


def thinned(points: np.ndarray, most: int) -> np.ndarray:
    """Shortens [N, columns] to at most `most` rows: means of consecutive rows; both ends stay."""
    if len(points) <= most:
        return points
    inner = np.array_split(points[1:-1], most - 2)
    return np.stack([points[0], *(part.mean(0) for part in inner), points[-1]])


def _never_moves(runs: Sequence[Run], curve: _Curve) -> bool:
    """Whether a curve of training, band and all, has one value in each run, at two steps or more;
    evaluations are always shown."""
    metrics = [*curve.metrics, *(curve.band or ())]
    if any(metric.startswith("held_out/") for metric in metrics):
        return False
    found = [run.series(metric)[1] for run in runs for metric in metrics]
    return all(np.all(values == values[:1]) for values in found) and max(map(len, found)) > 1


def _still_rows(runs: Sequence[Run], curve: _Curve) -> list[list[str]]:
    """Names and values in each run, for every metric of a curve."""
    rows = []
    for metric in [*curve.metrics, *(curve.band or ())]:
        values = [run.series(metric)[1] for run in runs]
        rows.append([metric, *(f"{v[0]:.4g}" if len(v) else "–" for v in values)])
    return rows


def _chart(runs: Sequence[Run], labels: Sequence[str], curve: _Curve, most: int) -> dict[str, Any]:
    series, counts = [], []
    for number, (run, label) in enumerate(zip(runs, labels, strict=True)):
        for variant, metric in enumerate(curve.metrics):
            steps, values = run.series(metric)
            counts.append(len(steps))
            points = thinned(np.stack([steps, values], axis=1), most)
            smooth = len(steps) >= _SMOOTHED and not metric.startswith("held_out/")
            entry = {
                "run": number,
                "label": label,
                "variant": variant,
                "kind": "line",
                "points": _point_list(points),
                "window": round(_window(runs) * len(points) / len(steps)) if smooth else 1,
            }
            if curve.band:
                entry["band"] = _band(run, curve.band, steps, most)
            series.append(entry)
    held_out = any(metric.startswith("held_out/") for metric in curve.metrics)
    fewest, most = min(filter(None, counts), default=0), max(counts)
    size = str(most) if fewest == most else f"{fewest} to {most}"
    size = f"{size} evaluations, {held_out_note(runs)}" if held_out else f"n = {size} steps"
    variants = list(curve.metrics.values())
    return {
        "title": curve.title,
        "unit": curve.unit,
        "note": " · ".join(filter(None, [curve.note, size])),
        "x": {"label": "step"},
        "y": curve.bounds,
        "zero": curve.zero,
        "variants": variants if len(variants) > 1 else [],
        "series": series,
    }


def _most_points(runs: Sequence[Run], factor: float) -> int:
    """Points per curve: fewer if many runs share the page."""
    most = max(40, min(_MOST_POINTS, 3 * _MOST_POINTS // len(runs)))
    return max(_FEWEST_POINTS, round(factor * most))


def _window(runs: Sequence[Run]) -> int:
    """Steps of the moving mean: ten, or a fortieth of a long run."""
    return max(LAW_STEPS, max(len(run.metrics) for run in runs) // 40)


def _reading(runs: Sequence[Run], most: int) -> str:
    longest = max(len(run.metrics) for run in runs)
    thin = "every step" if longest <= most else f"the steps, averaged to {most} points"
    if longest < _SMOOTHED:
        return f"{thin.capitalize()}."
    thick = f"mean of {_window(runs)} steps, where a curve has {_SMOOTHED} or more"
    return f"Thin: {thin}; thick: {thick}."


def _band(run: Run, names: tuple[str, str], steps: np.ndarray, most: int) -> list:
    (low_steps, low), (high_steps, high) = (run.series(name) for name in names)
    if not (np.array_equal(low_steps, steps) and np.array_equal(high_steps, steps)):
        return []
    return _point_list(thinned(np.stack([steps, low, high], axis=1), most))


def _point_list(points: np.ndarray) -> list:
    """Rows for the page. Steps are not rounded to 4 digits, because steps of long runs would
    coincide."""
    return [[round(float(row[0]), 1), *rounded(row[1:])] for row in points]


def _pass_charts(runs: Sequence[Run], names: Iterable[str]) -> Iterable[_Curve]:
    kinds = dict.fromkeys(m["kind"] for n in names if (m := _PASS.fullmatch(n)) and m["kind"])
    ks = held_out_ks(runs)
    for k in ks:
        metric = f"held_out/pass@{k}"
        yield _one(f"Held-out pass@{k}", "", metric, bounds=(0, 1))
    for kind in kinds:
        matches = (_PASS.fullmatch(n) for n in names)
        of_kind = sorted(int(m["k"]) for m in matches if m and m["kind"] == kind)
        ends = dict.fromkeys([of_kind[0], of_kind[-1]])
        metrics = {f"held_out/{kind}/pass@{k}": f"pass@{k}" for k in ends}
        yield _Curve(f"Held-out {kind} prompts", "", metrics, bounds=(0, 1))


def _kind_charts(names: Iterable[str]) -> Iterable[_Curve]:
    for name in names:
        if name.startswith("outcome/"):
            kind = name.removeprefix("outcome/")
            yield _one(f"Outcome, {kind} prompts", "", name)


def _info_charts(names: Iterable[str]) -> Iterable[_Curve]:
    for name in names:
        if match := _INFO.fullmatch(name):
            where = "held-out" if match["held_out"] else "training"
            kind = f", {match['kind']} prompts" if match["kind"] else ""
            title = match["name"].replace("_", " ").capitalize() + kind
            yield _one(title, where, name, zero=True)


def _pass_against_k(runs, labels) -> list[dict[str, Any]]:
    ks = held_out_ks(runs)
    if len(ks) < 2:
        return []
    series = []
    for number, (run, label) in enumerate(zip(runs, labels, strict=True)):
        curves = {k: run.series(f"held_out/pass@{k}")[1] for k in ks}
        for variant, end in enumerate((-1, 0)):
            points = [[k, rounded(values[end])] for k, values in curves.items() if len(values)]
            series.append(
                {"run": number, "label": label, "variant": variant, "kind": "line"}
                | {"points": points, "window": 1}
            )
    return [
        {
            "title": "pass@k against k",
            "unit": "fraction of prompts",
            "note": held_out_note(runs),
            "x": {"label": "k, samples allowed", "log2": True},
            "y": [0, 1],
            "variants": ["last", "first"],
            "series": series,
        }
    ]
