"""Compares methods over seeds: means with t-intervals, paired differences, and every seed.

    python -m rlvr_jax.analysis.comparison RUN [RUN …] --out comparison --baseline grpo

A slower method is not always worse, so there are two views. One has values after equally many
sampled rollouts. The other has values at the first time that a run reaches a common held-out
pass@1, with interpolation. t-intervals cover the seeds. A bootstrap of the last evaluation covers
the choice of held-out prompts. The intervals are not corrected for the number of comparisons.
"""

import argparse
import math
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from rlvr_jax.analysis.compared import Comparison, View
from rlvr_jax.analysis.comparison_page import write_comparison
from rlvr_jax.analysis.curves import held_out_ks, held_out_note
from rlvr_jax.analysis.prompt_bootstrap import PromptInterval, bootstrap_mean, estimates
from rlvr_jax.analysis.run_directory import Run, load_run
from rlvr_jax.analysis.seed_statistics import LEVEL_ROUNDING, Interval, crossing, value_at
from rlvr_jax.arguments import as_typed

_STRATEGY = re.compile(r"held_out/(.+/)?info/.+")


def compare_runs(
    out: str | Path,
    runs: Sequence[str | Path] | Mapping[str, Sequence[str | Path]],
    baseline: str | None = None,
    level: float | None = None,
) -> Comparison:
    """Compares runs and writes comparison.md, comparison.html and one PNG per curve into `out`.

    Args:
      out: folder to write to; made if needed.
      runs: run directories, which are grouped by the method of their config. Or a mapping of names
        to directories, to compare settings of one method. One run per method and seed.
      baseline: method that the others are compared with; default: the first one.
      level: held-out pass@1 of the second view; default: the highest that every run reaches, in
        steps of 0.01.
    Returns:
      The numbers that were written.
    Raises:
      ValueError: there is no run, a seed occurs twice, tasks differ, a run lacks held-out pass@1,
        or the baseline is unknown.
    """
    grouped = _grouped(runs)
    everything = [run for seeds in grouped.values() for run in seeds.values()]
    baseline = next(iter(grouped)) if baseline is None else baseline
    if baseline not in grouped:
        raise ValueError(f"compare_runs: baseline must be one of {list(grouped)}, got {baseline!r}")
    tasks = sorted({str(run.setting("task")) for run in everything})
    if len(tasks) > 1:
        raise ValueError(f"compare_runs: runs must share one task, got {tasks}")
    for run in everything:
        if not len(run.series("held_out/pass@1")[0]):
            raise ValueError(
                f"compare_runs: runs must have held_out/pass@1, got none in {run.path}"
            )

    unit, x = _common_axis(everything)
    present = dict.fromkeys(name for run in everything for name in run.names())
    metrics = [f"held_out/pass@{k}" for k in held_out_ks(everything)]
    metrics += [m for m in ("held_out/entropy", "entropy") if m in present][:1]
    metrics += [m for m in present if _STRATEGY.fullmatch(m)]

    def series(run, metric):
        steps, values = run.series(metric)
        return x[run.path][steps], values

    def view(where, point_of):
        values = {
            metric: {
                name: {
                    seed: value_at(*series(run, metric), point_of(run))
                    for seed, run in seeds.items()
                }
                for name, seeds in grouped.items()
            }
            for metric in metrics
        }
        return View(where, values)

    # A run that was stopped early does not shorten the others.
    ended = [run for run in everything if run.has_ended]
    end = min(series(run, "held_out/pass@1")[0][-1] for run in ended or everything)
    short = [
        f"{name} seed {seed} ended after {reached:,} of {end:,} {unit} and is left out there."
        for name, seeds in grouped.items()
        for seed, run in seeds.items()
        if (reached := int(series(run, "held_out/pass@1")[0][-1])) < end
    ]
    level = _common_level(everything) if level is None else level
    equal_rollouts = view(f"after {end:,} {unit}", lambda run: end)
    equal_pass = None
    if level is not None:
        equal_pass = view(
            # two digits, or the digits of a chosen level
            f"at held-out pass@1 = {max(f'{level:.2f}', f'{level:g}', key=len)}",
            lambda run: crossing(*series(run, "held_out/pass@1"), level),
        )
    comparison = Comparison(
        runs=grouped,
        baseline=baseline,
        x_name=unit,
        x=x,
        note=held_out_note(everything),
        equal_rollouts=equal_rollouts,
        prompts=_over_prompts(grouped, baseline, ended),
        equal_pass=equal_pass,
        sentences=[
            *short,
            *_sentences(equal_rollouts, grouped, baseline),
            *(_sentences(equal_pass, grouped, baseline) if equal_pass else ()),
        ],
    )
    write_comparison(Path(out), comparison)
    return comparison


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Compares methods over seeds.")
    parser.add_argument("runs", nargs="+", metavar="RUN", help="a run directory")
    parser.add_argument("--out", default="comparison", help="the folder to write")
    parser.add_argument(
        "--baseline", default=None, help="method from which the differences are computed"
    )
    parser.add_argument(
        "--level", type=float, default=None, help="held-out pass@1 at which the runs are compared"
    )
    options = parser.parse_args(arguments)
    try:
        with as_typed("RUN", "load_run: path"):
            found = compare_runs(options.out, options.runs, options.baseline, options.level)
    except ValueError as error:
        sys.exit(f"error: {error}")
    print("\n".join(found.sentences))
    print(Path(options.out) / "comparison.html")


def _grouped(runs) -> dict[str, dict[int, Run]]:
    if isinstance(runs, Mapping):
        named = [(name, load_run(path)) for name, paths in runs.items() for path in paths]
    else:
        named = [(run.method, run) for run in map(load_run, runs)]
    if not named:
        raise ValueError("compare_runs: runs must name a run directory, got none")
    grouped: dict[str, dict[int, Run]] = {}
    for name, run in named:
        seeds = grouped.setdefault(name, {})
        if run.seed in seeds:
            raise ValueError(
                f"compare_runs: runs must have one run per method and seed, got {name!r} with seed"
                f" {run.seed} in {seeds[run.seed].path} and {run.path}"
            )
        seeds[run.seed] = run
    return grouped


def _sampled_rollouts(run: Run) -> np.ndarray | None:
    """Rollouts sampled until the end of each step, from step 0; None if the run has no counts."""
    steps, sampled = run.series("sampled_rollouts")
    if not len(steps):
        prompts, size = run.setting("prompts_per_step"), run.setting("samples_per_prompt")
        if not (isinstance(prompts, int) and isinstance(size, int)):
            return None
        steps, sampled = slice(1, None), prompts * size
    return _so_far(run, steps, sampled)


def _common_axis(runs: Sequence[Run]) -> tuple[str, dict[Path, np.ndarray]]:
    """The axis of the comparison, and its value for each run and step."""
    units = {"sampled tokens": _sampled_tokens, "sampled rollouts": _sampled_rollouts}
    for unit, count in units.items():
        counted = {run.path: count(run) for run in runs}
        if all(amounts is not None for amounts in counted.values()):
            return unit, counted
    return "steps", {run.path: np.arange(run.last_step + 1) for run in runs}


def _sampled_tokens(run: Run) -> np.ndarray | None:
    """Tokens sampled until the end of each step; None where the tokens a run may sample are not
    limited, which is compared by rollouts."""
    steps, sampled = run.series("sampled_tokens")
    if not run.setting("sampled_tokens") or not len(steps):
        return None
    return _so_far(run, steps, sampled)


def _so_far(run: Run, steps: np.ndarray | slice, amounts: np.ndarray | int) -> np.ndarray:
    """Sums of amounts until the end of each step, from step 0."""
    by_step = np.zeros(run.last_step + 1)
    by_step[steps] = amounts
    return np.cumsum(by_step).astype(int)


def _common_level(runs: Sequence[Run]) -> float | None:
    """The highest pass@1, rounded down to 0.01, that every run reaches and at which none starts."""
    curves = [run.series("held_out/pass@1")[1] for run in runs]
    level = math.floor(100 * (min(curve.max() for curve in curves) + LEVEL_ROUNDING)) / 100
    return level if level > max(curve[0] for curve in curves) + LEVEL_ROUNDING else None


def _over_prompts(
    grouped: Mapping[str, Mapping[int, Run]], baseline: str, ended: Sequence[Run]
) -> dict[str, dict[str, PromptInterval]]:
    """See `Comparison.prompts`."""
    paths = {run.path for run in ended}
    last = {
        name: {
            seed: run.held_out[-1]
            for seed, run in seeds.items()
            if run.path in paths and run.held_out
        }
        for name, seeds in grouped.items()
    }
    every = [counts for seeds in last.values() for counts in seeds.values()]
    # Runs of equal tokens end at other steps.
    equal = all(_sampled_tokens(run) is not None for run in ended)
    asked = {
        (equal or counts["step"], counts["n"], *counts["prompts"], *counts["weights"])
        for counts in every
    }
    if len(asked) != 1 or not all(last.values()):
        return {}
    weights = every[0]["weights"]
    found: dict[str, dict[str, PromptInterval]] = {}
    for k in held_out_ks(ended):
        own = {name: estimates(list(seeds.values()), k) for name, seeds in last.items()}
        rows = {name: bootstrap_mean(values, weights) for name, values in own.items()}
        for name, seeds in last.items():
            both = [seed for seed in seeds if seed in last[baseline]]
            if name != baseline and both:
                ours, base = (
                    estimates([last[each][seed] for seed in both], k) for each in (name, baseline)
                )
                rows[f"{name} − {baseline}"] = bootstrap_mean(ours - base, weights)
        found[f"held_out/pass@{k}"] = rows
    return found


# At least so many methods that do not differ from the baseline share one sentence.
_FEWEST_TOGETHER = 3


def _sentences(view: View, methods: Sequence[str], baseline: str) -> list[str]:
    """One sentence per method and pass@k that is better or worse, then those that do not differ
    apart, together if they are many."""
    apart, others = [], []
    metrics = [m for m in view.values if m.startswith("held_out/pass@")]
    for metric in metrics:
        name = metric.removeprefix("held_out/")
        alike = {}
        for method in methods:
            if method == baseline or view.where.startswith(f"at held-out {name} ="):
                continue
            gap = view.difference(metric, method, baseline)
            reason = _reason(gap)
            if gap.excludes_zero:
                verdict = f"{method} is {'above' if gap.mean > 0 else 'below'} {baseline}"
                apart.append(f"{verdict} on {name} {view.where}: {reason}.")
            else:
                alike[method] = reason
        if len(alike) >= _FEWEST_TOGETHER:
            listed = f"{len(alike)} methods are not distinguishable from {baseline}"
            others.append(f"{listed} on {name} {view.where}: {', '.join(alike)}.")
        else:
            others += [
                f"{method} is not distinguishable from {baseline} on {name} {view.where}: {reason}."
                for method, reason in alike.items()
            ]
    return [*apart, *others]


def _reason(gap: Interval) -> str:
    """The numbers of a sentence, or the reason why they are missing."""
    pairs = len(gap.values)
    if pairs < 2:
        return "one paired seed gives no interval" if pairs else "no seed is paired"
    if not gap.exists:
        alike = f"{gap.signed} in all {pairs} paired seeds, which do not differ"
        return f"{alike}, so there is no interval"
    return f"{gap.signed} (paired, {pairs} seeds, 95 % interval)"


if __name__ == "__main__":
    main()
