"""Curricula: which prompts a step asks, and how.

The first of a chain picks prompts: `shuffled_epochs` is the default. Later ones set how prompts are
asked, or what label their rows carry (`cells_by_kind`). What several curricula remember of prompts
is the `History` of `history.py`, from visits that they observe; `picks.py` orders prompts by
weights and counts. A curriculum of one paper is in that paper's file.
"""

from rlvr_jax.experience.curricula.batches import shuffled_epochs
from rlvr_jax.experience.curricula.cells import cells_by_kind

__all__ = ["cells_by_kind", "shuffled_epochs"]
