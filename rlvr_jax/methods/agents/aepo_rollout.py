"""AEPO's rollouts: a probe sets how many begin at the prompt, and repeated forks are damped.

Dong et al. 2025, "Agentic Entropy-Balanced Policy Optimization", https://arxiv.org/abs/2510.14545

    m    = min(⌊k σ(β (H_root - H_tool))⌋ + 1, k)      of k rows begin at the prompt
    P    = clip(1 - 0.5 / (1 - 0.05 l) + γ (E_k - E_0), 0, 1), l forks of the prompt so far
    A, loss as ARPO's, whose entropies these are

One row of each prompt is written first: H_root is the entropy of its first tokens, H_tool the mean
over its rounds; it is one of the m. In the paper m has no + 1 and l counts forks in a row. The
published code has these forms, with the probe switched off. `aepo_agentic` has AEPO's changes of
the update. With `tools` a round ends at a call, as in the authors' code; without, after
`round_tokens`.

Reports: the whole of AEPO, Qwen3-14B on 1k samples: GAIA 47.6, HLE 11.2, WebWalkerQA 43.0 at
pass@1, and 65.0, 26.0, 70.0 at pass@5
Traps: a probe is a whole rollout before all others; short rounds sum fewer tokens and have a low
entropy, so m is above k/2 as a rule; after ten forks of a prompt equal entropies fork no more
"""

from typing import Any

from rlvr_jax.experience import branch_rounds, experience
from rlvr_jax.methods._tools import Tools
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.types import Method, Recipe, arguments_of
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Count, DualClip, Epsilon


@arguments_of(Tools, into="tools")
@arguments_of(branch_rounds, "weight", "base", "top", "window", penalty=0.05, sensitivity=0.5)
def aepo_rollout(
    round_tokens: Count = 64,
    dual: DualClip = 3.0,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
    *,
    tools: Tools,
    **branches: Any,
) -> Recipe:
    """GRPO on rows that begin where a probe and the entropies of rounds decide."""
    objective = clipped_objective(clip_low, clip_high, epsilon=epsilon, dual_clip=dual)
    return Recipe(objective, experience(draw=tools.branching_draw(round_tokens, **branches)))


METHOD = Method(aepo_rollout, changes="sampling")
