"""The judge of a run, from its settings.

`judge_of` combines its model (`calls`) with its prompt and options (`named`). `judging` returns the
stage that calls it. `checks` refuses invalid settings before the first step.
"""

from rlvr_jax.runs.judging.checks import check_asked, check_criteria
from rlvr_jax.runs.judging.named import asked_by_files, judge_of
from rlvr_jax.runs.judging.stages import judging, scoring_judge

__all__ = [
    "asked_by_files",
    "check_asked",
    "check_criteria",
    "judge_of",
    "judging",
    "scoring_judge",
]
