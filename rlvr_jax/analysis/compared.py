"""The data of a comparison of methods over seeds: numbers of every run, and conclusions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rlvr_jax.analysis.prompt_bootstrap import PromptInterval
from rlvr_jax.analysis.run_directory import Run
from rlvr_jax.analysis.seed_statistics import Interval, mean_interval


@dataclass(frozen=True)
class View:
    """Numbers of every run at one point of training.

    Fields:
      where: the point, as text.
      values: metric -> method -> seed -> number; NaN if the run did not reach the point.
    """

    where: str
    values: Mapping[str, Mapping[str, Mapping[int, float]]]

    def mean(self, metric: str, method: str) -> Interval:
        """The mean over seeds."""
        return mean_interval(list(self.values[metric][method].values()))

    def difference(self, metric: str, method: str, baseline: str) -> Interval:
        """The mean of method minus baseline, over the seeds that both have."""
        ours, base = self.values[metric][method], self.values[metric][baseline]
        return mean_interval([value - base[seed] for seed, value in ours.items() if seed in base])


@dataclass(frozen=True)
class Comparison:
    """The result of `compare_runs`.

    Fields:
      runs: method -> seed -> run.
      baseline: the method that the others are compared with.
      x_name: "sampled tokens" if all runs end at equal numbers of tokens. Else "sampled rollouts",
        or "steps" if a config lacks the number of samples.
      x: value of the axis by path of the run and step. Rollouts and tokens are counted until the
        end of the step, with those that a filter dropped.
      note: number of samples per prompt of the held-out metrics, as text.
      equal_rollouts: numbers after equally many rollouts (or steps). The number is the largest that
        every finished run reached; if no run has finished, that every run reached.
      prompts: metric -> method -> interval over prompts and seeds, at the last evaluation of
        finished runs. "method − baseline" is a paired difference. It is empty without finished runs
        or counts by prompt. It is also empty if prompts, weights or steps of the last evaluations
        differ.
      equal_pass: numbers when each run first reached a common held-out pass@1. None: there is no
        common value above the first and below the best value of every run.
      sentences: conclusions, with their intervals.
    """

    runs: Mapping[str, Mapping[int, Run]]
    baseline: str
    x_name: str
    x: Mapping[Path, np.ndarray]
    note: str
    equal_rollouts: View
    prompts: Mapping[str, Mapping[str, PromptInterval]]
    equal_pass: View | None
    sentences: Sequence[str]
