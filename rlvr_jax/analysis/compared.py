"""The data of a comparison of methods over seeds: every run's numbers, and its sentences."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rlvr_jax.analysis.prompt_bootstrap import PromptInterval
from rlvr_jax.analysis.run_directory import Run
from rlvr_jax.analysis.seed_statistics import Interval, mean_interval


@dataclass(frozen=True)
class View:
    """Every run's numbers at one point of training.

    Fields:
      where: the point, in words.
      values: metric -> method -> seed -> number; NaN where the run never came to that point.
    """

    where: str
    values: Mapping[str, Mapping[str, Mapping[int, float]]]

    def mean(self, metric: str, method: str) -> Interval:
        """The mean over seeds."""
        return mean_interval(list(self.values[metric][method].values()))

    def difference(self, metric: str, method: str, baseline: str) -> Interval:
        """The mean of `method` - `baseline` over the seeds that both have."""
        ours, base = self.values[metric][method], self.values[metric][baseline]
        return mean_interval([value - base[seed] for seed, value in ours.items() if seed in base])


@dataclass(frozen=True)
class Comparison:
    """The result of `compare_runs`.

    Fields:
      runs: method -> seed -> run.
      baseline: the method of paired differences.
      x_name: "sampled tokens" if all runs end at equal numbers, "sampled rollouts", or "steps" if a
        config lacks the number of samples.
      x: by path of the run and step, rollouts sampled until the end of that step, also those that a
        filter dropped; or the step itself.
      note: number of samples per prompt of the held-out numbers.
      equal_rollouts: numbers after equally many rollouts (or steps), as many as every finished run
        sampled; as every run, if none has finished.
      prompts: metric -> method -> interval over prompts and seeds at the last evaluation of
        finished runs. "method − baseline" is a paired difference. It is empty without finished
        runs or counts by prompt, and if prompts, weights or steps of the last evaluation differ.
      equal_pass: numbers at the first time that each run reached one held-out pass@1. None: every
        level is below the first value of a run or above the best value of a run.
      sentences: conclusions that the intervals allow.
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
