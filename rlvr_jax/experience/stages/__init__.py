"""Stages: what becomes of the answers before they are learned from."""

from rlvr_jax.experience.stages.adaptive_refill import adaptive_refill
from rlvr_jax.experience.stages.bootstrap import bootstrap_replies
from rlvr_jax.experience.stages.branch import branch
from rlvr_jax.experience.stages.cleanest import select_cleanest
from rlvr_jax.experience.stages.consistent import select_consistent
from rlvr_jax.experience.stages.critical import critical_token
from rlvr_jax.experience.stages.draw_more import budget_for_hard, draw_more
from rlvr_jax.experience.stages.embed import embed
from rlvr_jax.experience.stages.experts import imitate_hard, join_groups, show_to_worst
from rlvr_jax.experience.stages.groups import (
    all_right,
    all_wrong,
    mean_at_most,
    none_above,
    outside,
    solved_at_most,
    uniform,
)
from rlvr_jax.experience.stages.guided_rows import guide_first_rows
from rlvr_jax.experience.stages.hint_search import search_hint
from rlvr_jax.experience.stages.imitate_right import imitate_right
from rlvr_jax.experience.stages.imitate_solutions import imitate_solutions
from rlvr_jax.experience.stages.interventions import imitate_interventions
from rlvr_jax.experience.stages.masks import mask_truncated
from rlvr_jax.experience.stages.problems.abstractions import discover_abstractions
from rlvr_jax.experience.stages.problems.conjectures import imitate_proofs
from rlvr_jax.experience.stages.problems.fuse import fuse_statements
from rlvr_jax.experience.stages.problems.learnability import earn_learnability
from rlvr_jax.experience.stages.problems.questions import pose_questions
from rlvr_jax.experience.stages.problems.rewrite import rewrite_prompts
from rlvr_jax.experience.stages.problems.synthesize import synthesize_problems
from rlvr_jax.experience.stages.ranked_traces import place_ranked_traces
from rlvr_jax.experience.stages.recompose import recompose
from rlvr_jax.experience.stages.redraw import redraw, refill
from rlvr_jax.experience.stages.reference_answer import likely_answers
from rlvr_jax.experience.stages.refine import refine
from rlvr_jax.experience.stages.reflect import reflect
from rlvr_jax.experience.stages.rehearse import rehearse
from rlvr_jax.experience.stages.relabel import relabel
from rlvr_jax.experience.stages.replace_failures import replace_failures
from rlvr_jax.experience.stages.rows import select_rows
from rlvr_jax.experience.stages.salvage import salvage
from rlvr_jax.experience.stages.score_steps import score_steps
from rlvr_jax.experience.stages.screen import screen
from rlvr_jax.experience.stages.second_prompt import second_prompt, without_prompt
from rlvr_jax.experience.stages.shape import shape
from rlvr_jax.experience.stages.siblings import show_sibling
from rlvr_jax.experience.stages.templates import reward_template
from rlvr_jax.experience.stages.tournament import compare_by, tournament
from rlvr_jax.experience.stages.traces import add_traces, demonstrate

__all__ = [
    "adaptive_refill",
    "add_traces",
    "all_right",
    "all_wrong",
    "bootstrap_replies",
    "branch",
    "budget_for_hard",
    "compare_by",
    "critical_token",
    "demonstrate",
    "discover_abstractions",
    "draw_more",
    "earn_learnability",
    "embed",
    "fuse_statements",
    "guide_first_rows",
    "imitate_hard",
    "imitate_interventions",
    "imitate_proofs",
    "imitate_right",
    "imitate_solutions",
    "join_groups",
    "likely_answers",
    "mask_truncated",
    "mean_at_most",
    "none_above",
    "outside",
    "place_ranked_traces",
    "pose_questions",
    "recompose",
    "redraw",
    "refill",
    "refine",
    "reflect",
    "rehearse",
    "relabel",
    "replace_failures",
    "reward_template",
    "rewrite_prompts",
    "salvage",
    "score_steps",
    "screen",
    "search_hint",
    "second_prompt",
    "select_cleanest",
    "select_consistent",
    "select_rows",
    "shape",
    "show_sibling",
    "show_to_worst",
    "solved_at_most",
    "synthesize_problems",
    "tournament",
    "uniform",
    "without_prompt",
]
