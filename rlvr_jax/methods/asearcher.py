"""ASearcher: a clip around the weights at the update, and a weight for the mixture of older ones.

Gao et al. 2025, "Beyond Ten Turns", https://arxiv.org/abs/2508.07976

    r    = clip((R - mean - 0.5) · 10, ± 20), A = (r - mean) / (std + 1e-5) over the batch's tokens
    w    = π_old / π_behaviour, 0 above 5, without gradient
    loss = Σ w max(-A ρ, -A clip(ρ, 0.6, 1.4)) / Σ n_i, ρ = π / π_old

The scorer's log-probs at the weights before the update take the place of the proximal ones, those
of the sampler are what a token was drawn with, at whichever weights. The bias goes again in the
normalization over tokens. Groups without any right answer teach nothing. With `tools` a response is
written in turns, and is one row, whose context is read as it was written; theirs becomes several
rows where a page is cut short behind the turn that read it. With `staleness` (η) responses go on
under newer weights for so many steps (`queued`), which turns do not: they are written in one step.
The reward, F1 times form, is left to the task.
"""

from collections.abc import Sequence

from rlvr_jax.experience import all_wrong, experience, queued, refill
from rlvr_jax.methods._tools import named_turns
from rlvr_jax.objectives import (
    band_importance,
    objective,
    ppo_clip,
    scaled_centered,
    standardize_advantage,
    token_mean,
)
from rlvr_jax.objectives.arguments import check_count
from rlvr_jax.types import Method, Recipe


def asearcher(
    scale: float = 10.0,
    bias: float = -0.5,
    limit: float = 20.0,
    clip_low: float = 0.4,
    clip_high: float = 0.4,
    cap: float = 5.0,
    epsilon: float = 1e-5,
    staleness: int = 0,
    tools: Sequence[str] | None = (),
    style: str = "json",
    max_turns: int = 32,
    reply_tokens: int = 512,
    describe: bool = True,
) -> Recipe:
    """Decoupled PPO without a critic: clipped around the update's weights, weighed by importance.

    Args:
      scale, bias, limit: of the centered rewards.
      clip_low, clip_high: half-widths of the trust region.
      cap: tokens of a larger importance weight are left out of the loss.
      epsilon: added to the deviation of the advantages over the batch's tokens.
      staleness: steps that a group may wait for its responses (η, theirs is 4); 0: none does.
      tools: that may be called, by name (`named_toolbox`), such as search:CORPUS; none: a response
        is one text; None: the task has an environment.
      style: how calls are written: "json", "tags" or "fenced".
      max_turns: replies of a response at most.
      reply_tokens: of a reply at most.
      describe: a system message says what tools there are; it needs a chat template.
    Raises:
      ValueError: staleness of responses that are written in turns.
    """
    check_count(0, "asearcher", staleness=staleness)
    draw = named_turns(tools, style, max_turns, reply_tokens, describe)
    if draw is not None and staleness:
        raise ValueError(
            f"asearcher: staleness must be 0 for responses in turns, which are written in one"
            f" step, got {staleness}"
        )
    draw = queued(staleness) if staleness else draw
    return Recipe(
        objective=objective(
            advantage=scaled_centered(scale, bias, limit),
            transforms=[standardize_advantage(epsilon, ddof=0), band_importance(0.0, cap)],
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            aggregation=token_mean(),
        ),
        # Dropped groups keep their places, without a mask.
        experience=experience(draw=draw, stages=[refill(all_wrong, rounds=1)]),
    )


METHOD = Method(
    asearcher,
    "Beyond Ten Turns: Unlocking Long-Horizon Agentic Search with Large-Scale Asynchronous RL",
    "https://arxiv.org/abs/2508.07976",
    changes="sampling, selection, advantage, weight",
    left_out="the reward of F1 and form; pages that are cut short behind the turn that read them;"
    " turns that go on under newer weights",
    reports=(
        "QwQ-32B as agent, Avg@4: xBench up 46.7 % to 42.1, GAIA up 20.8 % to 52.8, with over 40 "
        "tool calls and 150k tokens"
    ),
    traps=(
        "without the normalization over tokens the bias would push every token down; tokens above "
        "the cap are dropped, not truncated, and stay in the denominator; long rows weigh more in "
        "mean and std"
    ),
)
