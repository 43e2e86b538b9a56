"""Curricula: which prompts a step asks, and how.

The first of a chain picks prompts: `shuffled_epochs` (the default), `prioritized`,
`shrinking_pool`, `unsolved_pool`, `adaptive_levels`, `variance_promotion`, `chosen_prompts`,
`rare_event_pair`. Later ones set how they are asked (`heat_solved`, `show_as`,
`begin_with_prefixes`, `remember_hints`, `ask_experts`), what label their rows carry
(`cells_by_kind`), leave some out (`set_solved_aside`), or begin rounds anew (`restart_every`). What
they remember of prompts is a `History` (`history`), from visits that they observe; `picks` orders
prompts by weights and counts.
"""

from rlvr_jax.experience.curricula.batches import shuffled_epochs
from rlvr_jax.experience.curricula.blocks import kinds_in_order
from rlvr_jax.experience.curricula.cells import cells_by_kind
from rlvr_jax.experience.curricula.chosen import chosen_prompts
from rlvr_jax.experience.curricula.difficulty_batches import pieces_by_difficulty
from rlvr_jax.experience.curricula.experts import ask_experts
from rlvr_jax.experience.curricula.formats import climb_formats
from rlvr_jax.experience.curricula.greedy import ask_greedily
from rlvr_jax.experience.curricula.hints import remember_hints
from rlvr_jax.experience.curricula.level_stages import one_level_at_a_time
from rlvr_jax.experience.curricula.levels import adaptive_levels
from rlvr_jax.experience.curricula.mastery import mastery_pool
from rlvr_jax.experience.curricula.pairs import rare_event_pair
from rlvr_jax.experience.curricula.prefix_starts import start_from_prefixes
from rlvr_jax.experience.curricula.prefixes import begin_with_prefixes
from rlvr_jax.experience.curricula.prioritized import prioritized
from rlvr_jax.experience.curricula.random_templates import random_templates
from rlvr_jax.experience.curricula.restarts import restart_every
from rlvr_jax.experience.curricula.shown import mix_views, show_as
from rlvr_jax.experience.curricula.shrinking import shrinking_pool, unsolved_pool
from rlvr_jax.experience.curricula.skills import withdraw_skills
from rlvr_jax.experience.curricula.solution_stages import begin_near_the_end
from rlvr_jax.experience.curricula.solved import rate_first, set_solved_aside
from rlvr_jax.experience.curricula.statements import prove_hard_ones
from rlvr_jax.experience.curricula.temperatures import heat_solved
from rlvr_jax.experience.curricula.variance import variance_promotion
from rlvr_jax.experience.curricula.weaknesses import shift_to_weaknesses

__all__ = [
    "adaptive_levels",
    "ask_experts",
    "ask_greedily",
    "begin_near_the_end",
    "begin_with_prefixes",
    "cells_by_kind",
    "chosen_prompts",
    "climb_formats",
    "heat_solved",
    "kinds_in_order",
    "mastery_pool",
    "mix_views",
    "one_level_at_a_time",
    "pieces_by_difficulty",
    "prioritized",
    "prove_hard_ones",
    "random_templates",
    "rare_event_pair",
    "rate_first",
    "remember_hints",
    "restart_every",
    "set_solved_aside",
    "shift_to_weaknesses",
    "show_as",
    "shrinking_pool",
    "shuffled_epochs",
    "start_from_prefixes",
    "unsolved_pool",
    "variance_promotion",
    "withdraw_skills",
]
