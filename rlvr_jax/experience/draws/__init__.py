"""Samplers: how the responses to the requested prompts are written.

`plain` samples each response at once, with an optional logits processor. `queued` continues groups
in the next step. `turns` writes responses in turns with an environment: tools, a search, a game.
`queued_turns` does both.
`branch_rounds` and `branch_turns` write responses with common prefixes. A sampler of one paper is
in that paper's file.
"""

from rlvr_jax.experience.draws.plain import plain
from rlvr_jax.experience.draws.queued import queued
from rlvr_jax.experience.draws.queued_turns import queued_turns
from rlvr_jax.experience.draws.trees import branch_rounds, branch_turns
from rlvr_jax.experience.draws.turns import turns

__all__ = ["branch_rounds", "branch_turns", "plain", "queued", "queued_turns", "turns"]
