"""Samplers whose responses have common prefixes: forked, branched, pruned or searched.

`Segments` are the segments of responses, each after a prefix of another response. `Nodes` are the
arrays of a search. `branch_rounds` forks after rounds of high entropy; `branch_turns` forks after
the reply to such a turn. A search of one paper is in that paper's file.
"""

from rlvr_jax.experience.draws.trees.branching import branch_rounds
from rlvr_jax.experience.draws.trees.nodes import Nodes
from rlvr_jax.experience.draws.trees.segments import Segments
from rlvr_jax.experience.draws.trees.turn_segments import branch_turns

__all__ = ["Nodes", "Segments", "branch_rounds", "branch_turns"]
