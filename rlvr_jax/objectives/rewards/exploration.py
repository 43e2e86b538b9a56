"""Paid for exploring, apart from being right: long reasoning, and effort that a judge sees."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.objectives.arguments import check_bound
from rlvr_jax.objectives.rewards.lengths import steady_reasoning
from rlvr_jax.objectives.rewards.parts import Shaping, judged_mean, judged_rows
from rlvr_jax.types.hyperparameters import NonNegative, Unit
from rlvr_jax.types.parts import part

__all__ = ["decoupled_exploration", "explored", "usable_effort"]

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
    Source: RLSP, https://github.com/GuanghaoYe/Emergence-of-Thinking.
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
