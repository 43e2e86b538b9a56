"""Stages: changes of a batch between sampling and training."""

from rlvr_jax.experience.stages.choices.groups import all_incorrect, outside, uniform
from rlvr_jax.experience.stages.choices.rows import mask_truncated, select_rows
from rlvr_jax.experience.stages.donors.imitate_turns import imitate_turns
from rlvr_jax.experience.stages.donors.rehearse import rehearse
from rlvr_jax.experience.stages.donors.siblings import show_sibling
from rlvr_jax.experience.stages.donors.traces import add_traces
from rlvr_jax.experience.stages.grading.give_again import give_again
from rlvr_jax.experience.stages.grading.grade_also import grade_also
from rlvr_jax.experience.stages.grading.judge import compare_with, judge
from rlvr_jax.experience.stages.grading.verdicts import request_verdict
from rlvr_jax.experience.stages.rewards.embed import embed
from rlvr_jax.experience.stages.rewards.score_steps import score_steps
from rlvr_jax.experience.stages.rewards.shape import shape
from rlvr_jax.experience.stages.rewards.tournament import compare_by, tournament
from rlvr_jax.experience.stages.rounds.redraw import redraw, refill

__all__ = [
    "add_traces",
    "all_incorrect",
    "compare_by",
    "compare_with",
    "embed",
    "give_again",
    "grade_also",
    "imitate_turns",
    "judge",
    "mask_truncated",
    "outside",
    "redraw",
    "refill",
    "rehearse",
    "request_verdict",
    "score_steps",
    "select_rows",
    "shape",
    "show_sibling",
    "tournament",
    "uniform",
]
