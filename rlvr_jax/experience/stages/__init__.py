"""Stages: what becomes of the answers before they are learned from."""

from rlvr_jax.experience.stages.adaptive_refill import adaptive_refill
from rlvr_jax.experience.stages.branch import branch
from rlvr_jax.experience.stages.cleanest import select_cleanest
from rlvr_jax.experience.stages.consistent import select_consistent
from rlvr_jax.experience.stages.critical import critical_token
from rlvr_jax.experience.stages.draw_more import budget_for_hard, draw_more
from rlvr_jax.experience.stages.embed import embed
from rlvr_jax.experience.stages.groups import (
    all_right,
    all_wrong,
    outside,
    solved_at_most,
    uniform,
)
from rlvr_jax.experience.stages.imitate_right import imitate_right
from rlvr_jax.experience.stages.masks import mask_truncated
from rlvr_jax.experience.stages.recompose import recompose
from rlvr_jax.experience.stages.redraw import redraw, refill
from rlvr_jax.experience.stages.reference_answer import likely_answers
from rlvr_jax.experience.stages.refine import refine
from rlvr_jax.experience.stages.rehearse import rehearse
from rlvr_jax.experience.stages.rows import select_rows
from rlvr_jax.experience.stages.score_steps import score_steps
from rlvr_jax.experience.stages.second_prompt import second_prompt, without_prompt
from rlvr_jax.experience.stages.shape import shape
from rlvr_jax.experience.stages.tournament import compare_by, tournament
from rlvr_jax.experience.stages.traces import add_traces, demonstrate

__all__ = [
    "adaptive_refill",
    "add_traces",
    "all_right",
    "all_wrong",
    "branch",
    "budget_for_hard",
    "compare_by",
    "critical_token",
    "demonstrate",
    "draw_more",
    "embed",
    "imitate_right",
    "likely_answers",
    "mask_truncated",
    "outside",
    "recompose",
    "redraw",
    "refill",
    "refine",
    "rehearse",
    "score_steps",
    "second_prompt",
    "select_cleanest",
    "select_consistent",
    "select_rows",
    "shape",
    "solved_at_most",
    "tournament",
    "uniform",
    "without_prompt",
]
