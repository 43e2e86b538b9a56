"""AEPO on tools: branches where they answer, and an update that trains uncertain tokens more.

Dong et al. 2025, "Agentic Entropy-Balanced Policy Optimization", https://arxiv.org/abs/2510.14545

    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    A*   = A (1 + 0.2 z), z the standard score of the token's entropy in the batch
    loss = Σ max(-A* ρ, -A* clip(ρ, 1 - ε_low, (1 + ε_high) ρ/sg(ρ))) / Σ n_i

with at most -3 A* where A* < 0. A token pushed up from above the trust region keeps the gradient of
a ratio frozen at the bound; the value of the loss is that of the ordinary clip. The abstract speaks
of tokens of high entropy, the authors' code does it for all. z < -5 turns the sign of an advantage.
Their code takes z per micro-batch.

Half of a prompt's rows begin at it, the others are forked behind replies of tools, by the entropies
of turns, as `aepo_rollout` says. `sensitivity` has a probe say how many begin, which the published
scripts have switched off. l counts all forks of a prompt; one published version of the code sets it
to 0 where other prompts of the batch forked and this one did not, the paper counts forks in a row.
"""

from collections.abc import Sequence

from rlvr_jax.experience import branch_turns, experience
from rlvr_jax.objectives.advantages.group_relative import group_normalized
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.soft_clips import ppo_cap
from rlvr_jax.objectives.transforms.entropy_scaling import scale_by_entropy
from rlvr_jax.tools import named_toolbox
from rlvr_jax.types import Method, Recipe


def aepo_agentic(
    entropy_coefficient: float = 0.2,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    dual: float = 3.0,
    epsilon: float = 1e-6,
    tools: Sequence[str] | None = ("python",),
    style: str = "json",
    max_turns: int = 8,
    reply_tokens: int = 512,
    describe: bool = True,
    share: float = 0.5,
    sensitivity: float | None = None,
    weight: float = 0.2,
    base: float = 0.5,
    penalty: float = 0.05,
    top: int = 10,
    window: int = 20,
) -> Recipe:
    """A ratio that is capped from above, on the token mean, with entropy-scaled advantages.

    Args:
      entropy_coefficient: how much the entropy's standard score scales an advantage.
      clip_low, clip_high: half-widths of the trust region (ε_low, ε_high).
      dual: bound of the loss where A < 0, in units of -A.
      epsilon: added to the standard deviation of a group's rewards.
      tools: that may be called, by name (`named_toolbox`); None: the task has an environment.
      style: how calls are written: "json", "tags" or "fenced".
      max_turns: replies of a response at most.
      reply_tokens: of a reply at most.
      describe: a system message says what tools there are; it needs a chat template.
      share: of a group's rows, that begin at the prompt; without `sensitivity`.
      sensitivity: of the number of rows that begin at the prompt (β), by a probe; None: no probe.
      weight: of the difference of entropies in the probability of a fork (γ).
      base: that probability at equal entropies, before any fork.
      penalty: each fork of a prompt damps the next ones by so much.
      top: likeliest tokens that an entropy is of.
      window: first tokens of a turn that count.
    """
    world = named_toolbox(tools, style, most=max_turns, describe=describe)
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            transforms=[scale_by_entropy(entropy_coefficient)],
            surrogate=ppo_cap(low=clip_low, high=clip_high, dual=dual),
            aggregation=token_mean(),
        ),
        experience=experience(
            draw=branch_turns(
                world,
                limit=max_turns,
                reply_tokens=reply_tokens,
                weight=weight,
                base=base,
                penalty=penalty,
                share=share,
                sensitivity=sensitivity,
                top=top,
                window=window,
            )
        ),
    )


METHOD = Method(
    aepo_agentic,
    "Agentic Entropy-Balanced Policy Optimization",
    "https://arxiv.org/abs/2510.14545",
    changes="sampling, advantage, surrogate",
    reports=(
        "Qwen3-14B on 1k samples, pass@1: GAIA 47.6, HLE 11.2, WebWalkerQA 43.0, above ARPO and "
        "GRPO, with a steadier entropy"
    ),
    traps=(
        "the cap changes gradients and not the loss, so its curve shows nothing; below -5 "
        "deviations of entropy an advantage turns its sign; one other port keeps the gradient on "
        "sure tokens alone"
    ),
)
