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
from rlvr_jax.experience.stages.grading import (
    ask_verdict,
    compare_with,
    grade_also,
    judge,
    rate_pairs,
    reward_itself,
    reward_odds,
)
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
from rlvr_jax.experience.stages.marks import find_formulas, mark_triggers
from rlvr_jax.experience.stages.masks import mask_truncated
from rlvr_jax.experience.stages.probes import probe_steps
from rlvr_jax.experience.stages.ranked_traces import place_ranked_traces
from rlvr_jax.experience.stages.recompose import recompose
from rlvr_jax.experience.stages.redraw import redraw, refill
from rlvr_jax.experience.stages.reference_answer import likely_answers
from rlvr_jax.experience.stages.refine import refine
from rlvr_jax.experience.stages.reflect import reflect
from rlvr_jax.experience.stages.rehearse import rehearse
from rlvr_jax.experience.stages.replay import replay_good
from rlvr_jax.experience.stages.rows import select_rows
from rlvr_jax.experience.stages.salvage import salvage
from rlvr_jax.experience.stages.score_steps import score_steps
from rlvr_jax.experience.stages.second_prompt import second_prompt, without_prompt
from rlvr_jax.experience.stages.shape import shape
from rlvr_jax.experience.stages.siblings import show_sibling
from rlvr_jax.experience.stages.tournament import compare_by, tournament
from rlvr_jax.experience.stages.traces import add_traces, demonstrate

__all__ = [
    "adaptive_refill",
    "add_traces",
    "all_right",
    "all_wrong",
    "ask_verdict",
    "bootstrap_replies",
    "branch",
    "budget_for_hard",
    "compare_by",
    "compare_with",
    "critical_token",
    "demonstrate",
    "draw_more",
    "embed",
    "find_formulas",
    "grade_also",
    "guide_first_rows",
    "imitate_hard",
    "imitate_interventions",
    "imitate_right",
    "imitate_solutions",
    "join_groups",
    "judge",
    "likely_answers",
    "mark_triggers",
    "mask_truncated",
    "mean_at_most",
    "none_above",
    "outside",
    "place_ranked_traces",
    "probe_steps",
    "rate_pairs",
    "recompose",
    "redraw",
    "refill",
    "refine",
    "reflect",
    "rehearse",
    "replay_good",
    "reward_itself",
    "reward_odds",
    "salvage",
    "score_steps",
    "search_hint",
    "second_prompt",
    "select_cleanest",
    "select_consistent",
    "select_rows",
    "shape",
    "show_sibling",
    "show_to_worst",
    "solved_at_most",
    "tournament",
    "uniform",
    "without_prompt",
]
