"""Boards: several methods with one task and one budget, as entries of settings.

`entry_config` reads an entry, "name:setting=value,…". `train_together` runs several configurations
in parallel, each in a process. `check_together` builds each run before the first one starts. The
boards of the leaderboard are in `experiments/boards`.
"""

from rlvr_jax.boards.entries import entry_config
from rlvr_jax.boards.together import check_together, default_jobs, train_together

__all__ = [
    "check_together",
    "default_jobs",
    "entry_config",
    "train_together",
]
