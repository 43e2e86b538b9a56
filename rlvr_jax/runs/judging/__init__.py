"""The judge of a run, as its settings name it.

`judge_of` makes it, of who is asked (`calls`) and of what and how (`named`); `judging` makes the
stage of a run that asks it; `checks` refuse what cannot work before the first step.
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
