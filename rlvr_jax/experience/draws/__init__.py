"""Draws: how asks are answered.

`plain` samples each response as a whole, with a processor of logits if it is given one, whose
constants may move (`growing_horizon`). `entropy_heated` has one that reads the scale of the last
batch's entropies. `from_drafts` goes on from what the policy would write again of a prompt's last
responses. `chunks` writes an answer in rows of bounded context, `summaries` in segments that the
policy sums up; `in_windows` goes on in the next step, and so does `queued`, group by group.
`turns` writes it together with an environment: tools, a search, a game; `turn_rows` makes a row of
each of its turns, `summarized_turns` segments that the policy sums up. `soft_prefixes` puts vectors
before prompts, `soft_thinking` thinks in mixtures of tokens. Those of `trees/` write responses that
share their beginnings.
"""

from rlvr_jax.experience.draws.plain import plain
from rlvr_jax.experience.draws.queued import queued
from rlvr_jax.experience.draws.trees import branch_rounds, branch_turns
from rlvr_jax.experience.draws.turns import turns

__all__ = ["branch_rounds", "branch_turns", "plain", "queued", "turns"]
