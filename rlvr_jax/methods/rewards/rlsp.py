"""RLSP: reasoning is paid for by its length and effort, whether the answer is right or not.

"On the Emergence of Thinking in LLMs I: Searching for the Right Intuition",
https://arxiv.org/abs/2502.06773

    v    = 1 right, 0 wrong, -½ no answer;  e = -min(C / L, 10), L tokens of the response
    R    = v + e, or (1 - w) (v + e) + w g with the effort g that a judge sees
    r_t  = R on the last token, -β (log π_old - log π_ref) on every one
    Â    = GAE of these with λ = 0.95, whitened over the batch; loss = Σ PPO clip / Σ n_i

Where no answer is right, longer ones are still preferred. The cap is ours: with the published clip
of the sum (`cap=None, clip=10`) right and wrong are the same for short responses. C is a quarter of
the budget (theirs is 1000 of 4096); they count characters up to the first box, divided by four. A
response that was cut gains no more than the shortest finished one. `out_of_order` is a curve of
whether length can outweigh being right. Nothing stops length from growing to the budget.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.experience import experience, shape
from rlvr_jax.objectives import (
    critic_of,
    generalized_advantage,
    whitened,
)
from rlvr_jax.objectives.arguments import check_bound
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.objectives.rewards.parts import Shaping, judged_mean, judged_rows
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import (
    ClipHigh,
    ClipLow,
    KLCoefficient,
    NonNegative,
    TraceDecay,
    Unit,
)
from rlvr_jax.types.parts import part

Rows = Float[Array, "B"]


def usable_effort(effort: Rows) -> Rows:
    """The judge's number in [0, 1]; ½ where it has failed."""
    return jnp.where((effort >= 0) & (effort <= 1), effort, 0.5)


def explored(
    outcome: Rows, exploration: Rows, effort: Rows | None, weight: float, clip: float | None = None
) -> Rows:
    """(1 - w) (v + e) + w g, or v + e without a judge.

    Args:
      outcome: v: 1 right, 0 wrong, -½ no answer.
      exploration: e, at most 0.
      effort: g, of a judge; None: nobody judged.
      weight: w.
      clip: bound of the sum on both sides; None: none.
    """
    reward = outcome + exploration
    if effort is not None:
        reward = (1 - weight) * reward + weight * usable_effort(effort)
    return reward if clip is None else jnp.clip(reward, -clip, clip)


@part
def decoupled_exploration(
    scale: NonNegative,
    cap: float | None = 10.0,
    weight: Unit = 0.0,
    judge: int | None = None,
    length: int | None = None,
    clip: float | None = None,
    no_answer: float = -0.5,
) -> Shaping:
    """`explored`: paid for reasoning on right and wrong responses alike, beside the outcome.

    A response that the budget cut is paid no more for its length than the shortest finished one of
    the batch.

    Args:
      scale, cap: C and the cap of `steady_reasoning`; None: no cap.
      weight: w of the judge, in [0, 1].
      judge: column of the task's rewards, the judge's g; None: nobody judges.
      length: column of the tokens of the reasoning; None: those of the response.
      clip: of the sum; None: none.
      no_answer: outcome of a response that gives no answer, in the place of 0.
    Reads: outcome, answer, truncated, component_rewards if there are columns.
    Metrics: reward/outcome, reward/exploration, reward/effort, and out_of_order: whether the
      shortest and the longest response of the batch are so far apart that a wrong one may earn more
      than a right one.
    Raises:
      ValueError: a negative scale, a bound that is not positive, or a weight outside [0, 1].
    """
    bounds = {"cap": cap, "clip": clip}
    check_bound("decoupled_exploration", **{n: x for n, x in bounds.items() if x is not None})
    columns = [column for column in (judge, length) if column is not None]

    def apply(rollouts, state, moment):
        del moment
        kind = rollouts.outcome.dtype
        known = rollouts.component_rewards
        tokens = rollouts.length.astype(kind) if length is None else known[:, length]
        outcome = jnp.where(
            (rollouts.answer < 0) & (rollouts.outcome == 0), no_answer, rollouts.outcome
        ).astype(kind)
        exploration = steady_reasoning(tokens, scale, cap)
        counted = judged_rows(rollouts)
        finished = counted & ~rollouts.truncated
        shortest = jnp.min(jnp.where(finished, exploration, jnp.inf))
        held = jnp.minimum(exploration, shortest)
        exploration = jnp.where(rollouts.truncated & jnp.any(finished), held, exploration)
        effort = None if judge is None else known[:, judge]
        gap = jnp.max(jnp.where(counted, exploration, -jnp.inf))
        gap = gap - jnp.min(jnp.where(counted, exploration, jnp.inf))
        metrics = {
            "reward/outcome": judged_mean(outcome, rollouts),
            "reward/exploration": judged_mean(exploration, rollouts),
            "out_of_order": jnp.where(gap > 1, 1.0, 0.0),
        }
        if effort is not None:
            metrics["reward/effort"] = judged_mean(usable_effort(effort), rollouts)
        return explored(outcome, exploration, effort, weight, clip), state, metrics

    reads = {"answer", *(("component_rewards",) if columns else ())}
    return Shaping(apply, reads=frozenset(reads), columns=max((c + 1 for c in columns), default=0))


def steady_reasoning(length: Rows, scale: float, cap: float | None = 10.0) -> Rows:
    """e = -min(C / L, cap): paid for more reasoning, whatever becomes of it; towards 0 from below.

    Args:
      length: L, tokens of the reasoning; below 1 counts as 1.
      scale: C, the length that costs 1; 0: nothing is paid.
      cap: the most that a short one costs; None: no cap.
    """
    cost = scale / jnp.maximum(length, 1)
    return -(cost if cap is None else jnp.minimum(cost, cap))


def rlsp(
    max_length: int = 4096,
    scale: float | None = None,
    cap: float | None = 10.0,
    effort_weight: float = 0.0,
    judge: int | None = None,
    clip: float | None = None,
    kl_coefficient: KLCoefficient = 0.05,
    trace_decay: TraceDecay = 0.95,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    value_clip: float = 0.2,
) -> Recipe:
    """PPO with a critic, on outcomes and what exploring earns.

    Args:
      max_length: budget of response tokens.
      scale: length that costs 1 (C); None: a quarter of the budget.
      cap: the most that a short response costs; None: no cap.
      effort_weight: of the judge's effort (w).
      judge: column of the task's rewards with that effort; None: nobody judges.
      clip: bound of the reward on both sides; None: none.
      value_clip: half-width of the critic's.
    """
    reward = decoupled_exploration(
        max_length / 4 if scale is None else scale, cap, effort_weight, judge, clip=clip
    )
    estimator = generalized_advantage(1.0, trace_decay, kl_coefficient)
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low, clip_high=clip_high, advantage=whitened(estimator)
        ),
        experience=experience(stages=[shape(reward)]),
        critic=critic_of(estimator, value_clip),
    )


METHOD = Method(
    rlsp,
    "On the Emergence of Thinking in LLMs I: Searching for the Right Intuition",
    "https://arxiv.org/abs/2502.06773",
    changes="reward, advantage",
    baseline="other",
    small={"max_length": 24},
    left_out=(
        "demonstrations before RL; the authors' judge (`--judge` brings one); "
        "the critic's first steps alone"
    ),
    reports=(
        "Llama-3.1-8B-Instruct: 23 % on MATH-500; Qwen2.5-32B-Instruct: 10 % on AIME 2024; "
        "backtracking appears from the length reward alone"
    ),
    traps=(
        "short right answers may earn less than long wrong ones; padding and repetition pay in "
        "full; the release pays 0, its best, where its grader fails; no price on length goes "
        "beside it"
    ),
)
