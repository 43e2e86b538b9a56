"""Draws whose responses share their beginnings: forked, branched, pruned or searched.

A response is written in `Pieces`, each behind the beginning of another; `Nodes` hold what a search
knows. `branch_rounds` forks after rounds that the policy was unsure of, `branch_turns` where an
environment answers such a round. A search of one paper is in that paper's file.
"""

from rlvr_jax.experience.draws.trees.nodes import Nodes
from rlvr_jax.experience.draws.trees.pieces import Pieces
from rlvr_jax.experience.draws.trees.rounds import branch_rounds
from rlvr_jax.experience.draws.trees.turned import branch_turns

__all__ = ["Nodes", "Pieces", "branch_rounds", "branch_turns"]
