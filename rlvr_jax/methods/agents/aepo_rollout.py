"""AEPO's rollouts: a probe sets how many rows begin at the prompt; repeated forks get rarer.

Dong et al. 2025, "Agentic Entropy-Balanced Policy Optimization", https://arxiv.org/abs/2510.14545

    m    = min(⌊k σ(β (H_root - H_tool))⌋ + 1, k)      of k rows begin at the prompt
    P    = clip(1 - 0.5 / (1 - 0.05 l) + γ (E_k - E_0), 0, 1), l forks of the prompt so far
    A, loss as ARPO's, whose entropies these are

The probe is one row of each prompt, sampled before the others. H_root is the entropy of its first
tokens, H_tool the mean over its rounds. The probe is one of the m rows. In the paper, m has no + 1
and l counts consecutive forks. The authors' code has the forms above, with the probe disabled.
AEPO's changes of the update are in `aepo_agentic`. With the task's environment, or `tools`, a round
ends at a call, as in the authors' code. Without tools, it ends after `round_tokens`.

Reports: the whole of AEPO, Qwen3-14B, 1k samples, in %. Pass@1: GAIA 47.6, HLE 11.2, WebWalkerQA
43.0. Pass@5: 65.0, 26.0, 70.0.
Traps: Sampling waits until the probe has written a whole rollout. Short rounds have a low entropy,
because they sum fewer tokens, so m is usually above k/2. After ten forks of a prompt, equal
entropies cause no more forks.
"""

from typing import Any

from rlvr_jax.experience import branch_rounds, experience
from rlvr_jax.methods._tools import Tools
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.types import Method, Recipe, Shown, arguments_of
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
    """Applies GRPO to rows whose starting points depend on a probe and the entropies of rounds.

    Args:
      round_tokens: tokens of a round, without tools.
    """
    objective = clipped_objective(clip_low, clip_high, epsilon=epsilon, dual_clip=dual)
    return Recipe(objective, experience(draw=tools.branching_draw(round_tokens, **branches)))


METHOD = Method(
    aepo_rollout,
    changes="sampling",
    shown=Shown(
        "noted_calculations", "experience/forked_rows", without={"base": 0.0, "weight": 0.0}
    ),
)
