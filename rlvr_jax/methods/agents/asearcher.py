"""ASearcher: PPO's clip around the weights before the update, and a weight for stale samples.

Gao et al. 2025, "Beyond Ten Turns", https://arxiv.org/abs/2508.07976

    r    = clip((R - mean - 0.5) · 10, ± 20), A = (r - mean) / (std + 1e-5) over the batch's tokens
    w    = π_old / π_behaviour, 0 above 5, without gradient
    loss = Σ w max(-A ρ, -A clip(ρ, 0.6, 1.4)) / Σ n_i, ρ = π / π_old

π_old is the policy at the weights before the update; it replaces the proximal policy. π_behaviour
is the distribution that sampled the token, under any earlier weights. The weight w is 0 above 5
(`cap`). The bias of -0.5 cancels in the normalization over tokens. Groups without a correct
response do not train.

A group may wait for its responses for `staleness` steps (η). They continue under newer weights,
and each token has its own π_behaviour. With `tools`, or the task's environment, a response is
written in turns and is one row (`queued_turns`); a step ends between two turns. Without, it ends
after a window of tokens (`queued`). The authors' response becomes several rows if a page is
truncated after the turn that read it. The task provides the reward; that of `searches` is the
paper's, F1 times form. The authors generate with other machines than those that train; here one
program does both.

Left out: pages that are truncated after the turn that read them.
Reports: QwQ-32B as agent, Avg@4: xBench rises by 46.7 % to 42.1, GAIA by 20.8 % to 52.8. Responses
have over 40 tool calls and 150k tokens.
Traps: Without the normalization over tokens, the bias would lower every token. Tokens above the cap
are dropped, but they count in the denominator. Long rows weigh more in mean and std.
"""

import jax.numpy as jnp

from rlvr_jax.experience import all_incorrect, experience, queued, queued_turns, refill
from rlvr_jax.methods._tools import Tools
from rlvr_jax.objectives import Transform, advantage_of_rewards, masked_mean, standardize_advantage
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.objectives.statistics.groups import group_deviation
from rlvr_jax.objectives.statistics.ratios import Ratio, clamped_token_ratio
from rlvr_jax.objectives.transforms.corrections import SAMPLED, check_band
from rlvr_jax.types import Method, Recipe, Shown, arguments_of, part, replace
from rlvr_jax.types.hyperparameters import (
    Bound,
    ClipHigh,
    ClipLow,
    Count,
    Epsilon,
    Finite,
    NonNegativeInt,
    Positive,
)


@part
def scaled_centered(scale: Positive, bias: Finite = 0.0, limit: Bound = jnp.inf) -> Transform:
    """A_i = clip((R_i - mean + bias) · scale, ± limit) over the rollouts of a prompt.

    Args:
      scale: factor.
      bias: added to every centered reward; a later whitening removes it.
      limit: bound of the advantage.
    Source: ASearcher, https://github.com/inclusionAI/ASearcher (`ppo/actor.py`).
    """

    def advantage(reward, group):
        return jnp.clip((group_deviation(reward, group) + bias) * scale, -limit, limit)

    return advantage_of_rewards(advantage)


@part(reads=SAMPLED, writes={"weight"})
def band_importance(low: float, high: float, ratio: Ratio = clamped_token_ratio) -> Transform:
    """Weighs each token by its importance, with weight 0 outside a band.

    weight' = weight · r · 1[low ≤ r ≤ high], r = exp(old_logp - behaviour_logp).

    Args:
      low, high: the band, 0 ≤ low ≤ high.
      ratio: as in `truncate_importance`.
    Metrics: silenced_fraction (of the tokens).
    Raises:
      ValueError: an empty band or a negative bound.
    Source: verl, https://github.com/volcengine/verl (docs/algo/rollout_corr.md).
    """
    check_band("band_importance", low, high)

    def apply(signals, context, state):
        own = ratio(context.old_logp, context.rollouts.behaviour_logp, signals.mask)
        inside = (low <= own) & (own <= high)
        weight = jnp.where(inside, signals.weight * own, 0)
        metrics = {"silenced_fraction": masked_mean(~inside, signals.mask)}
        return replace(signals, weight=weight), state, metrics

    return apply


@arguments_of(Tools, into="tools", max_turns=32)
def asearcher(
    scale: Positive = 10.0,
    bias: Finite = -0.5,
    limit: Bound = 20.0,
    clip_low: ClipLow = 0.4,
    clip_high: ClipHigh = 0.4,
    cap: Bound = 5.0,
    epsilon: Epsilon = 1e-5,
    staleness: NonNegativeInt = 4,
    turn_tokens: Count = 1024,
    *,
    tools: Tools,
) -> Recipe:
    """Applies decoupled PPO without a critic, with an importance weight for stale tokens.

    Args:
      scale, bias, limit: factor, offset and bound of the centered rewards.
      cap: importance weight above which a token is left out of the loss.
      staleness: steps that a group may wait for its responses (η); 0: none.
      turn_tokens: largest number of tokens of a turn.
    """
    draw = queued(staleness)
    if tools:
        draw = tools.draw(queued_turns, staleness=staleness, turn_tokens=turn_tokens)
    return Recipe(
        objective=clipped_objective(
            clip_low,
            clip_high,
            advantage=scaled_centered(scale, bias, limit),
            transforms=[standardize_advantage(epsilon, ddof=0), band_importance(0.0, cap)],
        ),
        # Dropped groups stay in the batch, without a mask.
        experience=experience(draw=draw, stages=[refill(all_incorrect, rounds=1)]),
    )


METHOD = Method(
    asearcher,
    "Beyond Ten Turns: Unlocking Long-Horizon Agentic Search with Large-Scale Asynchronous RL",
    "https://arxiv.org/abs/2508.07976",
    changes="sampling, selection, advantage, weight",
    shown=Shown("noted_calculations", "experience/stale_tokens", without={"staleness": 0}),
)
