"""Boards: several methods with one task and one budget, as entries of settings.

`BOARDS` are those of the leaderboard; `entry_config` reads an entry, "name:setting=value,…".
"""

from rlvr_jax.boards.boards import BOARDS, Board
from rlvr_jax.boards.entries import entry_config

__all__ = ["BOARDS", "Board", "entry_config"]
