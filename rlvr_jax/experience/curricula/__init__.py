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
from rlvr_jax.experience.curricula.cells import cells_by_kind

__all__ = ["cells_by_kind", "shuffled_epochs"]
