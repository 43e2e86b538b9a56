"""AEPO's rollouts: a probe says how many begin at the prompt, and repeated forks are damped.

Dong et al. 2025, "Agentic Entropy-Balanced Policy Optimization", https://arxiv.org/abs/2510.14545

    m    = min(⌊k σ(β (H_root - H_tool))⌋ + 1, k)      of k rows begin at the prompt
    P    = clip(1 - 0.5 / (1 - 0.05 l) + γ (E_k - E_0), 0, 1), l forks of the prompt so far
    A, loss as ARPO's, whose entropies these are

One row of each prompt is written first: H_root is the entropy of its first tokens, H_tool the mean
over its rounds; it is one of the m. In the paper m has no + 1 and l counts forks in a row; these
are the published code's readings, which has the probe switched off. What AEPO changes of the update
is `aepo_agentic`. With `tools` a round ends where one is called, as the authors' do; without, after
`round_tokens`.
"""

from collections.abc import Sequence

from rlvr_jax.experience import experience
from rlvr_jax.methods._tools import named_branches
from rlvr_jax.objectives import group_normalized
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Epsilon


def aepo_rollout(
    round_tokens: int = 64,
    sensitivity: float = 0.5,
    weight: float = 0.2,
    base: float = 0.5,
    penalty: float = 0.05,
    top: int = 10,
    window: int = 20,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    dual: float = 3.0,
    epsilon: Epsilon = 1e-6,
    tools: Sequence[str] | None = (),
    style: str = "json",
    max_turns: int = 8,
    reply_tokens: int = 512,
    describe: bool = True,
) -> Recipe:
    """GRPO on rows of which a probe and the entropies of rounds say where they begin.

    Args:
      round_tokens: tokens of a round, without tools.
      sensitivity: of the number of rows that begin at the prompt (β).
      weight: of the difference of entropies in the probability of a fork (γ).
      base: that probability at equal entropies, before any fork.
      penalty: each fork of a prompt damps the next ones by so much.
      top: likeliest tokens that an entropy is of.
      window: first tokens that count.
      dual: bound of the loss where A < 0, in units of -A.
      tools: that may be called, by name (`named_toolbox`), rounds being turns between calls; none:
        rounds end after `round_tokens`; None: the task has an environment.
      style: how calls are written: "json", "tags" or "fenced".
      max_turns: replies of a response at most.
      reply_tokens: of a reply at most.
      describe: a system message says what tools there are; it needs a chat template.
    """
    draw = named_branches(
        tools,
        style,
        max_turns,
        reply_tokens,
        describe,
        round_tokens,
        weight=weight,
        base=base,
        penalty=penalty,
        sensitivity=sensitivity,
        top=top,
        window=window,
    )
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low,
            clip_high=clip_high,
            advantage=group_normalized(epsilon),
            dual_clip=dual,
        ),
        experience=experience(draw=draw),
    )


METHOD = Method(
    aepo_rollout,
    "Agentic Entropy-Balanced Policy Optimization",
    "https://arxiv.org/abs/2510.14545",
    changes="sampling",
    reports=(
        "the whole of AEPO, Qwen3-14B on 1k samples: GAIA 47.6, HLE 11.2, WebWalkerQA 43.0 at "
        "pass@1, and 65.0, 26.0, 70.0 at pass@5"
    ),
    traps=(
        "a probe is a whole rollout before all others; short rounds sum fewer tokens and look "
        "sure, so m is above k/2 as a rule; after ten forks of a prompt equal entropies fork no "
        "more"
    ),
)
