"""Clip and Delta: process rewards that more steps do not make larger.

"On Designing Effective RL Reward at Training Time for LLM Reasoning",
https://arxiv.org/abs/2410.15115

    clip   r̃_k = min(r_k - η, 0)
    delta  r̃_k = r_k - r_{k+1}, r_{K-1} for the last but one step, 0 for the last
    r_t  = outcome on the last token + α r̃_k on the last token of step k
    PPO with a critic on these: Â by GAE, whitened; loss = Σ PPO clip / Σ n_i

A sum of scores is farmed by repeating right but needless steps. Clipped ones are at most 0; the
differences add up to the step's own score, whatever follows, so that a response earns min(r_1 - η,
0) on its way. That needs a discount of 1. η and α are not known: 0 and 0.1 are ours, so that the
outcome decides. The scores of steps are the task's (`score_steps`), theirs a model's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import jax.numpy as jnp
from jaxtyping import Array, Bool

from rlvr_jax.experience import experience, score_steps
from rlvr_jax.objectives import critic_of, whitened
from rlvr_jax.objectives.advantages.process_credit import own_reward, paid_tokens, process_metrics
from rlvr_jax.objectives.advantages.returns import generalized_advantages
from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.arguments import check_finite
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.objectives.rewards.process import ProcessReward, Table, spread
from rlvr_jax.objectives.statistics.implicit_rewards import step_ends
from rlvr_jax.objectives.statistics.steps import Steps, find_steps, next_step, step_sum
from rlvr_jax.types import Method, Recipe, replace
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Finite, TraceDecay, Unit
from rlvr_jax.types.parts import part
from rlvr_jax.types.rollouts import Rollouts


@part(writes={"advantage"}, once=True)
def generalized_process_advantage(
    process: ProcessReward,
    coefficient: Finite = 1.0,
    discount: Unit = 1.0,
    trace_decay: Unit = 1.0,
) -> Transform:
    """`generalized_advantages` of what tokens are paid on their way and the reward at the end.

    Args:
      process: what tokens are paid on the way; of a row alone, where a critic is fitted to it.
      coefficient: α of it.
      discount, trace_decay: γ and λ, in [0, 1].
    Metrics: as `process_to_go`.
    """

    def apply(signals, context, state):
        rollouts, mask = context.rollouts, signals.mask
        paid = paid_tokens(rollouts, mask, process, coefficient, own_reward)
        own = generalized_advantages(paid, rollouts.values, mask, discount, trace_decay)
        metrics = process_metrics(rollouts, mask, process)
        return replace(signals, advantage=own), state, metrics

    return Transform(apply, reads={"values", *process.reads})


def final_scores(rollouts: Rollouts, mask: Bool[Array, "B T"]) -> tuple[Table, Steps]:
    """The scores of the steps, `process_reward` at their last tokens; and the steps."""
    steps = find_steps(rollouts.step, mask)
    return step_sum(jnp.where(step_ends(steps), rollouts.process_reward, 0), steps), steps


def clipped_scores(scores: Table, steps: Steps, threshold: float) -> Table:
    """min(r - η, 0): good steps earn nothing, so that more of them earn no more.

    Args:
      threshold: η, from which on a step is good.
    """
    return jnp.where(steps.exists, jnp.minimum(scores - threshold, 0), 0)


def score_differences(scores: Table, steps: Steps) -> Table:
    """r_k - r_{k+1}, r_{K-1} for the last but one and 0 for the last: the sum from k on is r_k.

    Whatever follows, a step earns its own score, and a response r_1; that needs γ = 1. The last
    step, the answer, is the outcome's.
    """
    last = _number(steps) - 1
    column = jnp.arange(scores.shape[1], dtype=last.dtype)[None]
    following = jnp.where(column + 1 < last, next_step(scores, steps), 0)
    return jnp.where(steps.exists & (column < last), scores - following, 0)


def of_steps(
    refine: Callable[[Table, Steps], Table],
    read: Callable[[Rollouts, Array], tuple[Table, Steps]] = final_scores,
    reads: Iterable[str] = (),
) -> ProcessReward:
    """The process reward of refined scores of steps, on their last tokens.

    Args:
      refine: (scores, steps) -> scores, as tables.
      read: how the scores are read.
      reads: records beside `step` and `process_reward`.
    """

    def of(rollouts, mask):
        scores, steps = read(rollouts, mask)
        return spread(refine(scores, steps), steps)

    return ProcessReward(of, frozenset({"step", "process_reward", *reads}))


def _number(steps):
    return jnp.sum(steps.exists, axis=1, keepdims=True, dtype=jnp.int32)


@part
def clip_and_delta(threshold: float = 0.0, clip: bool = True, delta: bool = True) -> ProcessReward:
    """`score_differences` of `clipped_scores`: the way earns min(r_1 - η, 0).

    Args:
      threshold: η.
      clip, delta: with either alone, or neither, to compare.
    Reads: step, process_reward at the last tokens of the steps.
    Raises:
      ValueError: threshold not finite.
    """
    check_finite("clip_and_delta", threshold=threshold)

    def refine(scores, steps):
        if clip:
            scores = clipped_scores(scores, steps, threshold)
        return score_differences(scores, steps) if delta else scores

    return of_steps(refine)


def designing_rewards(
    threshold: float = 0.0,
    coefficient: float = 0.1,
    clip: bool = True,
    delta: bool = True,
    trace_decay: TraceDecay = 1.0,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    value_clip: float = 0.2,
) -> Recipe:
    """PPO with a critic, on outcomes and refined scores of steps.

    Args:
      threshold: score from which on a step is good (η).
      coefficient: of the process reward (α).
      clip, delta: whether scores are clipped, and whether differences are paid.
      value_clip: half-width of the critic's.
    """
    process = clip_and_delta(threshold, clip, delta)
    estimator = generalized_process_advantage(process, coefficient, trace_decay=trace_decay)
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low, clip_high=clip_high, advantage=whitened(estimator)
        ),
        experience=experience(stages=[score_steps()]),
        critic=critic_of(estimator, value_clip),
    )


METHOD = Method(
    designing_rewards,
    "On Designing Effective RL Reward at Training Time for LLM Reasoning",
    "https://arxiv.org/abs/2410.15115",
    changes="reward, advantage",
    baseline="other",
    evidence="reconstruction",
    left_out="the process reward model",
    reports=(
        "Qwen2 and Qwen2.5 of 1.5B and 7B on MATH and GSM8K: plain process rewards may do worse "
        "than outcomes alone, clip and delta improve all"
    ),
    traps=(
        "a response of one step gets nothing from delta; steps must be cut where the scores were "
        "made for; the sum telescopes at a discount of 1 alone"
    ),
)
