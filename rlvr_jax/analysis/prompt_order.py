"""Orders the prompts of a run by the changes of their outcomes.

    python -m rlvr_jax.analysis.prompt_order RUN
    python -m rlvr_jax.analysis.prompt_order RUN --by impact --top 20

The command reads `outcomes.jsonl` of a run directory. It prints the prompts by falling score;
1-shot RLVR trains on the first one. Columns are the number (position in the task's train prompts),
the score, the number of sampled groups, and the mean and the last pass rate.

    variance   population std of a prompt's mean outcomes
    impact     1 - Σ (acc - avg)² / Σ (1 - avg)², avg the mean curve of all prompts

Source: Wang et al. 2025, https://arxiv.org/abs/2504.20571 (variance), and its code,
  https://github.com/ypwang61/One-Shot-RLVR (also the impact, "lim").
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from rlvr_jax.analysis.run_directory import read_steps


def historical_variance(histories: Sequence[Sequence[float]]) -> np.ndarray:
    """Population standard deviation of each prompt's pass rates, float64 [n]."""
    return np.array([np.std(np.asarray(history, float)) for history in histories])


def learning_impact(histories: Sequence[Sequence[float]]) -> np.ndarray:
    """1 - Σ (acc - avg)² / Σ (1 - avg)² over epochs, float64 [n]; avg is the mean of all prompts.

    Histories are cut to the shortest one. If the average is always 1, a prompt that is always
    correct has score 1.
    """
    shortest = min(map(len, histories))
    rates = np.array([history[:shortest] for history in histories], float)
    average = rates.mean(axis=0)
    missed = np.sum((1 - average) ** 2)
    return 1 - np.sum((rates - average) ** 2, axis=1) / (missed if missed > 0 else 1.0)


def order(scores: np.ndarray) -> np.ndarray:
    """Positions by falling score, int [n]; equal scores keep their order."""
    return np.argsort(-np.asarray(scores), kind="stable")


def read_histories(run: str | Path) -> dict[int, list[float]]:
    """The pass rates of each prompt of a run by its number, one rate per sampled group.

    Numbers ascend. Groups with a changed view of the prompt and ungraded responses do not count.
    """
    path = Path(run) / "outcomes.jsonl"
    if not path.is_file():
        raise ValueError(f"read_histories: run must be a directory with outcomes.jsonl, got {run}")
    found: dict[int, list[float]] = {}
    for line in read_steps(path):
        prompts = zip(line["number"], line["view"], line["outcome"], strict=True)
        for number, view, outcomes in prompts:
            known = [outcome for outcome in outcomes if outcome is not None]
            if view == "plain" and known:
                found.setdefault(number, []).append(float(np.mean(known)))
    if not found:
        raise ValueError(f"read_histories: {path} must hold sampled prompts, got none")
    return dict(sorted(found.items()))


_SCORES: Mapping[str, Callable[[Sequence[Sequence[float]]], np.ndarray]] = {
    "variance": historical_variance,
    "impact": learning_impact,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the order."""
    parser = argparse.ArgumentParser(description="Orders a run's prompts by their outcomes.")
    parser.add_argument("run", help="run directory")
    parser.add_argument("--by", choices=_SCORES, default="variance", help="the score")
    parser.add_argument("--top", type=int, default=10, help="number of prompts to print; 0: all")
    parser.add_argument(
        "--least-sampled",
        type=int,
        default=2,
        help="minimum number of times that a prompt was sampled",
    )
    given = parser.parse_args(arguments)
    if given.top < 0:
        parser.error(f"--top must be at least 0, got {given.top}")
    try:
        known = read_histories(given.run)
    except ValueError as error:
        parser.error(str(error))
    histories = {
        number: rates for number, rates in known.items() if len(rates) >= given.least_sampled
    }
    if not histories:
        most = max(map(len, known.values()))
        parser.error(f"--least-sampled must be at most {most}, got {given.least_sampled}")
    numbers, scores = list(histories), _SCORES[given.by](list(histories.values()))
    print(
        f"{len(numbers)} of {len(known)} prompts were sampled {given.least_sampled} times or more"
    )
    print("  rank  number     score  groups   mean   last")
    for rank, place in enumerate(order(scores)[: given.top or None].tolist(), start=1):
        rates = histories[numbers[place]]
        rates_text = f"{len(rates):6d}  {np.mean(rates):.3f}  {rates[-1]:.3f}"
        print(f"{rank:6d}  {numbers[place]:6d}  {scores[place]:8.4f}  {rates_text}")


if __name__ == "__main__":
    main()
