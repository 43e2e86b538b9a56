"""Curricula: which prompts a step asks, and how.

The first of a chain picks prompts: `shuffled_epochs` (the default), `prioritized`,
`shrinking_pool`, `unsolved_pool`, `adaptive_levels`, `variance_promotion`, `chosen_prompts`,
`rare_event_pair`, `kinds_in_order`. Later ones set how they are asked (`heat_solved`, `show_as`,
`begin_with_prefixes`, `remember_hints`, `ask_experts`), what label their rows carry
(`cells_by_kind`), leave some out (`set_solved_aside`), or begin rounds anew (`restart_every`). What
they remember of prompts is a `History` (`history`), from visits that they observe; `picks` orders
prompts by weights and counts.
"""

from rlvr_jax.experience.curricula.batches import shuffled_epochs
from rlvr_jax.experience.curricula.blocks import kinds_in_order
from rlvr_jax.experience.curricula.cells import cells_by_kind
from rlvr_jax.experience.curricula.chosen import chosen_prompts
from rlvr_jax.experience.curricula.experts import ask_experts
from rlvr_jax.experience.curricula.hints import remember_hints
from rlvr_jax.experience.curricula.levels import adaptive_levels
from rlvr_jax.experience.curricula.pairs import rare_event_pair
from rlvr_jax.experience.curricula.prefixes import begin_with_prefixes
from rlvr_jax.experience.curricula.prioritized import prioritized
from rlvr_jax.experience.curricula.restarts import restart_every
from rlvr_jax.experience.curricula.shown import show_as
from rlvr_jax.experience.curricula.shrinking import shrinking_pool, unsolved_pool
from rlvr_jax.experience.curricula.solved import rate_first, set_solved_aside
from rlvr_jax.experience.curricula.temperatures import heat_solved
from rlvr_jax.experience.curricula.variance import variance_promotion

__all__ = [
    "adaptive_levels",
    "ask_experts",
    "begin_with_prefixes",
    "cells_by_kind",
    "chosen_prompts",
    "heat_solved",
    "kinds_in_order",
    "prioritized",
    "rare_event_pair",
    "rate_first",
    "remember_hints",
    "restart_every",
    "set_solved_aside",
    "show_as",
    "shrinking_pool",
    "shuffled_epochs",
    "unsolved_pool",
    "variance_promotion",
]
