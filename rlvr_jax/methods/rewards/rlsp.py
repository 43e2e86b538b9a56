"""RLSP: adds a reward for the length and effort of reasoning to the outcome.

"On the Emergence of Thinking in LLMs I: Searching for the Right Intuition",
https://arxiv.org/abs/2502.06773

    v    = 1 correct, 0 incorrect, -½ no answer;  e = -min(C / L, 10), L tokens of the response
    R    = v + e, or (1 - w) (v + e) + w g with the effort g by a judge
    r_t  = R on the last token, -β (log π_old - log π_ref) on every one
    Â    = GAE of these with λ = 0.95, whitened over the batch; loss = Σ PPO clip / Σ n_i

If no response is correct, longer ones are still preferred. Only the budget limits the length.

Deviations:

- The cap of e is ours. With the published clip of the sum (`cap=None, clip=10`), correct and
incorrect short responses earn equal rewards.
- C (`scale`) is a quarter of the budget (theirs: 1000 of 4096). The authors count characters up to
the first box, divided by four.
- A truncated response earns at most the e of the shortest finished one.

Left out: demonstrations before RL; the authors' judge (use `--judge`); the critic's first steps
without policy updates.
Reports: Llama-3.1-8B-Instruct: 23 % on MATH-500. Qwen2.5-32B-Instruct: 10 % on AIME 2024.
Backtracking appears with only the length reward.
Traps: Short correct responses may earn less than long incorrect ones. Padding and repetition are
rewarded fully. If the grader fails, the authors' code assigns 0, the best reward. Do not combine
the method with a penalty on length.
"""

from typing import Any

import jax.numpy as jnp

from rlvr_jax.experience import Shaping, experience, judged_rows, shape, shaping
from rlvr_jax.objectives import clipped_with_critic, generalized_advantage, part
from rlvr_jax.types import Method, Recipe, Shown, arguments_of
from rlvr_jax.types.hyperparameters import (
    Bound,
    KLCoefficient,
    MaxLength,
    NonNegative,
    NonNegativeInt,
    TraceDecay,
    Unit,
)

NO_ANSWER = -0.5  # outcome of a response without an answer


@part
def decoupled_exploration(
    scale: NonNegative,
    cap: Bound | None = 10.0,
    weight: Unit = 0.0,
    number: NonNegativeInt | None = None,
    clip: Bound | None = None,
) -> Shaping:
    """(1 - w) (v + e) + w g, or v + e without a judge.

    Args:
      scale: length that costs 1, in tokens (C).
      cap: largest cost of a short response; None: no bound.
      weight: weight of the effort g (w).
      number: index of the task's reward with that effort; None: no judge.
      clip: bound of the reward on both sides; None: no bound.
    Metrics: reward/outcome, reward/exploration, reward/effort (means of the outcome v, the bonus e
      and the effort g), out_of_order (1 if e differs by more than 1 in the batch, so that length
      can outweigh correctness), exploration_range (largest e less the smallest one).
    """

    def reward(rollouts):
        kind = rollouts.outcome.dtype
        no_answer = (rollouts.records["answer"] < 0) & (rollouts.outcome == 0)
        outcome = jnp.where(no_answer, NO_ANSWER, rollouts.outcome).astype(kind)
        cost = scale / jnp.maximum(rollouts.length.astype(kind), 1)
        exploration = -(cost if cap is None else jnp.minimum(cost, cap))
        counted = judged_rows(rollouts)
        finished = counted & ~rollouts.truncated
        shortest = jnp.min(jnp.where(finished, exploration, jnp.inf))
        held = jnp.minimum(exploration, shortest)
        exploration = jnp.where(rollouts.truncated & jnp.any(finished), held, exploration)
        gap = jnp.max(jnp.where(counted, exploration, -jnp.inf))
        gap = gap - jnp.min(jnp.where(counted, exploration, jnp.inf))
        parts = {
            "reward/outcome": outcome,
            "reward/exploration": exploration,
            "out_of_order": jnp.full_like(outcome, jnp.where(gap > 1, 1.0, 0.0)),
            "exploration_range": jnp.full_like(outcome, gap),
        }
        earned = outcome + exploration
        if number is not None:
            effort = rollouts.records["component_rewards"][:, number]
            # A judge that failed counts half.
            effort = jnp.where((effort >= 0) & (effort <= 1), effort, 0.5)
            parts["reward/effort"] = effort
            earned = (1 - weight) * earned + weight * effort
        return earned if clip is None else jnp.clip(earned, -clip, clip), parts

    return shaping(reward, reads={"answer"}, columns=0 if number is None else number + 1)


@arguments_of(clipped_with_critic, "clip_low", "clip_high", "value_clip")
def rlsp(
    max_length: MaxLength = 4096,
    scale: NonNegative | None = None,
    cap: Bound | None = 10.0,
    effort_weight: Unit = 0.0,
    number: NonNegativeInt | None = None,
    clip: Bound | None = None,
    kl_coefficient: KLCoefficient = 0.05,
    trace_decay: TraceDecay = 0.95,
    **clips: Any,
) -> Recipe:
    """Applies PPO with a critic to outcomes plus a reward for long reasoning.

    Args:
      scale: length that costs 1 (C); None: a quarter of the budget.
      cap: the most that a short response costs; None: no cap.
      effort_weight: weight of the judge's effort (w).
      number: index of the task's reward with that effort; None: no judge.
      clip: bound of the reward on both sides; None: none.
    """
    reward = decoupled_exploration(
        max_length / 4 if scale is None else scale, cap, effort_weight, number, clip
    )
    estimator = generalized_advantage(1.0, trace_decay, kl_coefficient)
    fitted = clipped_with_critic(estimator, **clips)
    return Recipe(**fitted, experience=experience(stages=[shape(reward)]))


METHOD = Method(
    rlsp,
    changes="reward, advantage",
    baseline="other",
    small={"max_length": 24},
    shown=Shown(
        "brackets",
        "experience/exploration_range",
        without={"scale": 0},
        hyperparameters={"effort_weight": 0.2, "number": 0},
        settings={"judge": "rlvr_jax.tasks.brackets_judge:effort"},
    ),
)
