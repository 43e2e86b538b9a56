"""Draws whose responses share their beginnings: forked, branched, pruned or searched.

A response is written in `Pieces`, each behind the beginning of another; `Nodes` hold what a search
knows. `branch_rounds` forks after rounds that the policy was unsure of, `branch_at_best` where
likely words mean different things, `prune` gives up rows on the way, and `search_tree` is a Monte
Carlo tree search.
"""

from rlvr_jax.experience.draws.trees.diverse import branch_at_best
from rlvr_jax.experience.draws.trees.nodes import Nodes
from rlvr_jax.experience.draws.trees.pieces import Pieces
from rlvr_jax.experience.draws.trees.pruned import prune
from rlvr_jax.experience.draws.trees.rounds import branch_rounds
from rlvr_jax.experience.draws.trees.search import search_tree

__all__ = ["Nodes", "Pieces", "branch_at_best", "branch_rounds", "prune", "search_tree"]
