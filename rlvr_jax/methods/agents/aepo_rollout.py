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

from rlvr_jax.experience import branch_rounds, branch_turns, experience
from rlvr_jax.methods._tools import Tools, with_tools
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.types import Method, Recipe, arguments_of
from rlvr_jax.types.hyperparameters import Count, DualClip, NonNegative, Unit


@with_tools()
@arguments_of(clipped_objective, "clip_low", "clip_high", "epsilon")
def aepo_rollout(
    round_tokens: Count = 64,
    sensitivity: NonNegative = 0.5,
    weight: NonNegative = 0.2,
    base: Unit = 0.5,
    penalty: NonNegative = 0.05,
    top: Count = 10,
    window: Count = 20,
    dual: DualClip = 3.0,
    *,
    tools: Tools,
    **clip: Any,
) -> Recipe:
    """GRPO on rows that begin where a probe and the entropies of rounds decide.

    Args:
      round_tokens: tokens of a round, without tools.
      sensitivity, weight, base, penalty, top, window: as for `branch_rounds`; `weight` is γ.
    """
    branches = dict(
        weight=weight,
        base=base,
        penalty=penalty,
        sensitivity=sensitivity,
        top=top,
        window=window,
    )
    draw = tools.draw(branch_turns, **branches) if tools else None
    return Recipe(
        objective=clipped_objective(dual_clip=dual, **clip),
        experience=experience(draw=draw or branch_rounds(round_tokens, **branches)),
    )


METHOD = Method(aepo_rollout, changes="sampling")
