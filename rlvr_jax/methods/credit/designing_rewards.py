"""Clip and Delta: process rewards that do not grow with the number of steps.

"On Designing Effective RL Reward at Training Time for LLM Reasoning",
https://arxiv.org/abs/2410.15115

    clip   r̃_k = min(r_k - η, 0)
    delta  r̃_k = r_k - r_{k+1}, r_{K-1} for the last but one step, 0 for the last
    r_t  = outcome on the last token + α r̃_k on the last token of step k
    PPO with a critic on these: Â by GAE, whitened; loss = Σ PPO clip / Σ n_i

A policy can increase a sum of scores by repeating correct but needless steps. Clipped scores are at
most 0. The differences from step k on add up to the score of step k, so a response earns min(r_1 -
η, 0) before the outcome. This requires a discount of 1. A reconstruction: η (`threshold`) and α
(`coefficient`) are not known. η = ½ is ours, the middle of scores from 0 to 1. With signed scores
it is 0. α = 0.1 is ours, so that the outcome dominates. The scores are those of the task
(`score_steps`), in the paper those of a model.

Left out: the process reward model.
Reports: Qwen2 and Qwen2.5 of 1.5B and 7B on MATH and GSM8K: plain process rewards may be worse than
outcomes only. Clip and delta improve all models (no numbers).
Traps: A response of one step has no delta reward. Steps must be split as the scorer expects. With η
at the least score, clipped scores are all 0; a run refuses it.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool

from rlvr_jax.experience import experience, score_steps
from rlvr_jax.objectives import Transform, generalized_advantages, masked_mean, part
from rlvr_jax.objectives.advantages.process_credit import (
    ProcessReward,
    Table,
    own_reward,
    paid_tokens,
    process_metrics,
    spread,
)
from rlvr_jax.objectives.compositions import clipped_with_critic
from rlvr_jax.objectives.statistics.steps import Steps, find_steps, next_step, step_ends, step_sum
from rlvr_jax.types import Method, Recipe, Rollouts, Shown, arguments_of, replace
from rlvr_jax.types.hyperparameters import (
    Discount,
    Finite,
    TraceDecay,
)


@part(reads={"step", "process_reward"})
def clip_and_delta(threshold: Finite = 0.5, clip: bool = True, delta: bool = True) -> ProcessReward:
    """`score_differences` of min(r - η, 0), at the last tokens of the steps.

    Reads: step, process_reward at the last tokens of the steps.
    """

    def of(rollouts, mask):
        scores, steps = final_scores(rollouts, mask)
        if clip:
            # Good steps earn nothing, so more of them earn no more.
            scores = jnp.where(steps.exists, jnp.minimum(scores - threshold, 0), 0)
        if delta:
            scores = score_differences(scores, steps)
        return spread(scores, steps)

    return of


def final_scores(rollouts: Rollouts, mask: Bool[Array, "B T"]) -> tuple[Table, Steps]:
    """The scores of the steps, `process_reward` at their last tokens; and the steps."""
    steps = find_steps(rollouts.records["step"], mask)
    return step_sum(
        jnp.where(step_ends(steps), rollouts.records["process_reward"], 0), steps
    ), steps


def score_differences(scores: Table, steps: Steps) -> Table:
    """r_k - r_{k+1}; r_{K-1} for the last but one step and 0 for the last.

    The sum from step k on is r_k. The last step is the answer, which the outcome rewards.
    """
    last = jnp.sum(steps.exists, axis=1, keepdims=True, dtype=jnp.int32) - 1
    column = jnp.arange(scores.shape[1], dtype=last.dtype)[None]
    following = jnp.where(column + 1 < last, next_step(scores, steps), 0)
    return jnp.where(steps.exists & (column < last), scores - following, 0)


@part(writes={"advantage"}, once=True)
def generalized_process_advantage(
    process: ProcessReward,
    coefficient: Finite = 1.0,
    discount: Discount = 1.0,
    trace_decay: TraceDecay = 1.0,
) -> Transform:
    """`generalized_advantages` of the process reward and of the reward at the last token.

    Args:
      process: reward of tokens before the end. Where a critic is fitted, it must depend only on
        the row.
      coefficient: weight of the process reward (α).
    Metrics: those of `process_to_go`; process_paid_fraction (fraction of the tokens at which the
      weighted process reward is not 0).
    """

    def apply(signals, context, state):
        rollouts, mask = context.rollouts, signals.mask
        paid = paid_tokens(rollouts, mask, process, coefficient, own_reward)
        own = generalized_advantages(paid, rollouts.records["values"], mask, discount, trace_decay)
        nonzero = coefficient * process.of(rollouts, mask) != 0
        metrics = process_metrics(rollouts, mask, process)
        metrics["process_paid_fraction"] = masked_mean(nonzero.astype(own.dtype), mask)
        return replace(signals, advantage=own), state, metrics

    return Transform(apply, reads={"values", *process.reads})


@arguments_of(clipped_with_critic, "clip_low", "clip_high", "value_clip")
def designing_rewards(
    threshold: Finite = 0.5,
    coefficient: Finite = 0.1,
    clip: bool = True,
    delta: bool = True,
    trace_decay: TraceDecay = 1.0,
    **clips: Any,
) -> Recipe:
    """Applies PPO with a critic to outcomes and refined scores of steps.

    Args:
      threshold: score from which on a step is good (η).
      coefficient: weight of the process reward (α).
      clip, delta: whether scores are clipped, and whether differences are rewarded.
    """
    process = clip_and_delta(threshold, clip, delta)
    scores = score_steps(threshold if clip else None)
    estimator = generalized_process_advantage(process, coefficient, trace_decay=trace_decay)
    fitted = clipped_with_critic(estimator, **clips)
    return Recipe(**fitted, experience=experience(stages=[scores]))


METHOD = Method(
    designing_rewards,
    changes="reward, advantage",
    baseline="other",
    evidence="reconstruction",
    shown=Shown("brackets", "process_paid_fraction", without={"coefficient": 0}),
)
