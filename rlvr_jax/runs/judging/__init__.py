"""The judge of a run, as its settings name it.

`judge_of` makes it from its model (`calls`) and its prompt and options (`named`); `judging` makes
the stage of a run that calls it; `checks` refuse invalid settings before the first step.
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
