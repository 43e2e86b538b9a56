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
    """What `compare_runs` found.

    Fields:
      runs: method -> seed -> run.
      baseline: the method that differences are taken to.
      x_name: "sampled tokens" where all runs end at so many, "sampled rollouts", or "steps" where a
        config does not say how many are sampled.
      x: by path of the run and step, rollouts sampled until the end of that step (of all that were
        drawn, also those that a filter dropped), or the step itself.
      note: how many samples per prompt the held-out numbers rest on.
      equal_rollouts: the numbers after as many rollouts (or steps) as every run that has come to
        its last step sampled; as every run, if none has.
      prompts: metric -> method -> interval over prompts and seeds at the last evaluation, of runs
        that have come to their end; with "method − baseline" for paired differences. Empty if no
        run has, and where runs did not count prompt by prompt, asked others, weighed them
        otherwise, or were last evaluated at other steps.
      equal_pass: the numbers where each run first reached one held-out pass@1; None if every level
        is below where some run starts or above where some run gets.
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
