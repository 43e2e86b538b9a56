"""Curricula: the prompts that a step requests.

The first curriculum of a chain picks prompts; the default is `shuffled_epochs`. Later curricula set
views or temperatures, or label rows (`cells_by_kind`). `history.py` has the `History` of sampled
prompts that curricula store. `picks.py` orders prompts by weights and counts. A
curriculum of one paper is in the paper's file.
"""

from rlvr_jax.experience.curricula.batches import shuffled_epochs
from rlvr_jax.experience.curricula.cells import cells_by_kind

__all__ = ["cells_by_kind", "shuffled_epochs"]
