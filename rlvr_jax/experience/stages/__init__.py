"""Stages: what becomes of the answers before they are learned from."""

from rlvr_jax.experience.stages.choices.cleanest import select_cleanest
from rlvr_jax.experience.stages.choices.consistent import select_consistent
from rlvr_jax.experience.stages.choices.groups import (
    all_right,
    all_wrong,
    mean_at_most,
    none_above,
    outside,
    solved_at_most,
    uniform,
)
from rlvr_jax.experience.stages.choices.masks import mask_truncated, mask_void
from rlvr_jax.experience.stages.choices.recompose import recompose
from rlvr_jax.experience.stages.choices.rows import select_rows
from rlvr_jax.experience.stages.donors.experts import imitate_hard, join_groups, show_to_worst
from rlvr_jax.experience.stages.donors.imitate_right import imitate_right
from rlvr_jax.experience.stages.donors.imitate_solutions import imitate_solutions
from rlvr_jax.experience.stages.donors.imitate_turns import imitate_turns
from rlvr_jax.experience.stages.donors.ranked_traces import place_ranked_traces
from rlvr_jax.experience.stages.donors.rehearse import rehearse
from rlvr_jax.experience.stages.donors.rejection import rejection_sampling
from rlvr_jax.experience.stages.donors.replace_failures import replace_failures
from rlvr_jax.experience.stages.donors.replay import replay_good
from rlvr_jax.experience.stages.donors.siblings import show_sibling
from rlvr_jax.experience.stages.donors.traces import add_traces, demonstrate
from rlvr_jax.experience.stages.grading import (
    ask_verdict,
    compare_with,
    give_again,
    grade_also,
    judge,
    rate_pairs,
    reward_itself,
    reward_odds,
)
from rlvr_jax.experience.stages.problems.abstractions import discover_abstractions
from rlvr_jax.experience.stages.problems.conjectures import imitate_proofs
from rlvr_jax.experience.stages.problems.fuse import fuse_statements
from rlvr_jax.experience.stages.problems.learnability import earn_learnability
from rlvr_jax.experience.stages.problems.questions import pose_questions
from rlvr_jax.experience.stages.problems.rewrite import rewrite_prompts
from rlvr_jax.experience.stages.problems.synthesize import synthesize_problems
from rlvr_jax.experience.stages.rewards.embed import embed
from rlvr_jax.experience.stages.rewards.marks import find_formulas, mark_triggers
from rlvr_jax.experience.stages.rewards.probes import probe_steps
from rlvr_jax.experience.stages.rewards.reference_answer import likely_answers
from rlvr_jax.experience.stages.rewards.relabel import relabel
from rlvr_jax.experience.stages.rewards.score_steps import score_steps
from rlvr_jax.experience.stages.rewards.second_prompt import second_prompt, without_prompt
from rlvr_jax.experience.stages.rewards.shape import shape
from rlvr_jax.experience.stages.rewards.templates import reward_template
from rlvr_jax.experience.stages.rewards.tournament import compare_by, tournament
from rlvr_jax.experience.stages.rounds.adaptive_refill import adaptive_refill
from rlvr_jax.experience.stages.rounds.another_view import train_under
from rlvr_jax.experience.stages.rounds.bootstrap import bootstrap_replies
from rlvr_jax.experience.stages.rounds.branch import branch
from rlvr_jax.experience.stages.rounds.controllers import draw_controllers
from rlvr_jax.experience.stages.rounds.critical import critical_token
from rlvr_jax.experience.stages.rounds.draw_more import budget_for_hard, draw_more
from rlvr_jax.experience.stages.rounds.guided_rows import guide_first_rows
from rlvr_jax.experience.stages.rounds.hint_search import search_hint
from rlvr_jax.experience.stages.rounds.interventions import imitate_interventions
from rlvr_jax.experience.stages.rounds.recover import recover
from rlvr_jax.experience.stages.rounds.redraw import redraw, refill
from rlvr_jax.experience.stages.rounds.refine import refine
from rlvr_jax.experience.stages.rounds.reflect import reflect
from rlvr_jax.experience.stages.rounds.salvage import salvage
from rlvr_jax.experience.stages.rounds.screen import screen
from rlvr_jax.experience.stages.rounds.turn_candidates import pair_turns

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
    "discover_abstractions",
    "draw_controllers",
    "draw_more",
    "earn_learnability",
    "embed",
    "find_formulas",
    "fuse_statements",
    "give_again",
    "grade_also",
    "guide_first_rows",
    "imitate_hard",
    "imitate_interventions",
    "imitate_proofs",
    "imitate_right",
    "imitate_solutions",
    "imitate_turns",
    "join_groups",
    "judge",
    "likely_answers",
    "mark_triggers",
    "mask_truncated",
    "mask_void",
    "mean_at_most",
    "none_above",
    "outside",
    "pair_turns",
    "place_ranked_traces",
    "pose_questions",
    "probe_steps",
    "rate_pairs",
    "recompose",
    "recover",
    "redraw",
    "refill",
    "refine",
    "reflect",
    "rehearse",
    "rejection_sampling",
    "relabel",
    "replace_failures",
    "replay_good",
    "reward_itself",
    "reward_odds",
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
    "train_under",
    "uniform",
    "without_prompt",
]
