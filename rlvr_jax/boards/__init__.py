"""Boards: several methods with one task and one budget, as entries of settings.

`entry_config` reads an entry, "name:setting=value,…". The boards of the
leaderboard are in `experiments/boards`. `train_together` runs several configurations side by side,
each in a process; `check_together` tries them before the first begins.
"""

from rlvr_jax.boards.entries import entry_config
from rlvr_jax.boards.together import check_together, default_jobs, train_together

__all__ = [
    "check_together",
    "default_jobs",
    "entry_config",
    "train_together",
]
