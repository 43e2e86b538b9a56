"""Draws: how asks are answered.

`plain` samples each response as a whole, with a processor of logits if it is given one. `queued`
goes on in the next step, group by group. `turns` writes an answer together with an environment:
tools, a search, a game. `branch_rounds` and `branch_turns` write responses that share their
beginnings. A draw of one paper is in that paper's file.
"""

from rlvr_jax.experience.draws.plain import plain
from rlvr_jax.experience.draws.queued import queued
from rlvr_jax.experience.draws.trees import branch_rounds, branch_turns
from rlvr_jax.experience.draws.turns import turns

__all__ = ["branch_rounds", "branch_turns", "plain", "queued", "turns"]
