"""Further graders: a judge, a second verifier, the policy itself."""

from rlvr_jax.experience.stages.grading.give_again import give_again
from rlvr_jax.experience.stages.grading.grade_also import grade_also
from rlvr_jax.experience.stages.grading.judge import compare_with, judge
from rlvr_jax.experience.stages.grading.verdicts import ask_verdict

__all__ = ["ask_verdict", "compare_with", "give_again", "grade_also", "judge"]
